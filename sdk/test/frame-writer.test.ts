// Our own frames as independent WebSocket peers read them: the engine's unmasked ones and the client's masked ones.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { wsDialer } from "@iii/sdk/run";
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

/** A client's wire of ours and the server's end of it, by `ws` alone, with every chunk that the server's socket reads. */
async function dialled() {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
  await new Promise<void>((resolve) => server.once("listening", resolve));
  const chunks: Buffer[] = [];
  const got: { text: string; binary: boolean }[] = [];
  const closed = Promise.withResolvers<number>();
  server.on("connection", (far, request) => {
    request.socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    far.on("message", (data: Buffer, binary) => got.push({ text: data.toString(), binary }));
    far.on("close", (code) => closed.resolve(code));
  });
  const opened = Promise.withResolvers<void>();
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const wire = wsDialer(url).dial("/", { open: () => opened.resolve(), message() {}, close() {} });
  await opened.promise;
  const end = async (): Promise<void> => {
    wire.terminate();
    await new Promise((resolve) => server.close(resolve));
  };
  return { wire, got, chunks, closed: closed.promise, end };
}

test("a client's messages of every size and kind arrive whole and in order, with what ws writes between them", async () => {
  const { wire, got, end } = await dialled();
  const sent: typeof got = [];
  for (const size of SIZES) {
    for (const letter of TEXTS) {
      const text = letter.repeat(size);
      const bytes = new TextEncoder().encode(text);
      wire.send(text);
      wire.send(bytes, true);
      wire.send(bytes);
      wire.ping?.();
      const plain = new TextDecoder().decode(bytes);
      sent.push({ text: plain, binary: false }, { text: plain, binary: true }, { text: plain, binary: false });
    }
  }
  expect(wire.buffered).toBeGreaterThan(0);
  await expect.poll(() => got.length, { timeout: 10_000 }).toBe(sent.length);
  expect(got).toEqual(sent);
  await end();
});

test("a client's small messages of one turn leave together, each with a mask of its own, and a close leaves none behind", async () => {
  const { wire, got, chunks, closed, end } = await dialled();
  for (let n = 0; n < 64; n += 1) wire.send("same");
  await expect.poll(() => got.length).toBe(64);
  const all = Buffer.concat(chunks);
  // Each frame: two bytes of header, four of mask, four of text.
  expect(all.length).toBe(64 * 10);
  expect(chunks.length).toBeLessThan(4);
  const masks = new Set(Array.from({ length: 64 }, (_, n) => all.readUInt32BE(n * 10 + 2)));
  expect(masks.size).toBeGreaterThan(60);
  wire.send("last");
  wire.close(1000, "");
  expect(await closed).toBe(1000);
  expect(got.at(-1)).toEqual({ text: "last", binary: false });
  await end();
});
