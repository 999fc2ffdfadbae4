// The engine's own frames as an independent WebSocket client reads them.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { FrameWriter } from "@iii/sdk/socket";
import { expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";

const SIZES = [0, 1, 124, 125, 126, 127, 128, 2_047, 2_048, 2_049, 2_100, 6_200, 65_534, 65_535, 65_536, 65_537, 300_000];
const TEXTS = ["x", "é", "漢", "😀", "\ud800"];

async function pair(): Promise<{ writer: FrameWriter; server: WebSocket; client: WebSocket; end(): Promise<void> }> {
  const upgrades = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  const http = createServer();
  const accepted = new Promise<{ writer: FrameWriter; server: WebSocket }>((resolve) => {
    http.on("upgrade", (request, socket, head) => {
      upgrades.handleUpgrade(request, socket, head, (server) => {
        resolve({ writer: new FrameWriter(socket, () => server.readyState === server.OPEN), server });
      });
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const client = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`);
  const end = async (): Promise<void> => {
    client.terminate();
    await new Promise((resolve) => http.close(resolve));
  };
  return { ...(await accepted), client, end };
}

test("messages of every size and kind arrive whole and in order, with what ws writes between them", async () => {
  const { writer, server, client, end } = await pair();
  const got: { text: string; binary: boolean }[] = [];
  client.on("message", (data: Buffer, binary) => got.push({ text: data.toString(), binary }));
  const sent: typeof got = [];
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
  for (const size of SIZES) {
    for (const letter of TEXTS) {
      const body = encode(letter.repeat(size));
      const expected = `<${new TextDecoder().decode(body)}>`;
      expect(writer.text("<", body, ">")).toBe(encode(expected).length);
      writer.text(expected);
      writer.text(`"${letter}":`, encode("1"), letter);
      writer.bytes(body, true);
      server.ping();
      sent.push({ text: expected, binary: false }, { text: expected, binary: false });
      const plain = letter.toWellFormed();
      sent.push({ text: `"${plain}":1${plain}`, binary: false }, { text: expected.slice(1, -1), binary: true });
    }
  }
  writer.text("last");
  sent.push({ text: "last", binary: false });
  await expect.poll(() => got.length, { timeout: 10_000 }).toBe(sent.length);
  expect(got).toEqual(sent);
  await end();
});

test("what waits is counted, leaves at the end of the turn, and is dropped on a socket that is not open any more", async () => {
  const { writer, server, client, end } = await pair();
  const got: string[] = [];
  client.on("message", (data: Buffer) => got.push(data.toString()));
  writer.text("early");
  expect(writer.waiting).toBe(7);
  await expect.poll(() => got).toEqual(["early"]);
  expect(writer.waiting).toBe(0);
  writer.text("too late to leave");
  server.close();
  expect(writer.text("not open")).toBe(0);
  await new Promise((resolve) => client.once("close", resolve));
  expect(got).toEqual(["early"]);
  await end();
});
