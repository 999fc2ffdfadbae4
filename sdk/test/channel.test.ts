import { type ChannelRef, connect, type Dialer } from "@iii/sdk";
import { ManualClock, type PeerConnection, ScriptedPeer, seededRandom, settle } from "@iii/sdk/testing";
import { expect, test } from "vitest";

const ref = (direction: "read" | "write"): ChannelRef => ({ channel_id: "c1", access_key: "k", direction });

function setUp() {
  const peer = new ScriptedPeer();
  const iii = connect({ dialer: peer, clock: new ManualClock(), random: seededRandom() });
  return { peer, iii };
}

async function collect(source: AsyncIterable<string | Uint8Array>): Promise<(string | Uint8Array)[]> {
  const frames: (string | Uint8Array)[] = [];
  for await (const frame of source) frames.push(frame);
  return frames;
}

test("frames that arrive before anyone reads are kept, in order, text and binary", async () => {
  const { peer, iii } = setUp();
  const reader = iii.openReader(ref("read"));
  await settle();
  expect(peer.last.path).toBe("/ws/channels/c1?key=k&dir=read");
  peer.last.send("one");
  peer.last.send(Uint8Array.of(1, 2));
  peer.last.drop(1000);
  expect(await collect(reader)).toEqual(["one", Uint8Array.of(1, 2)]);
});

test("a stream that breaks off is an error after its last frame, not an end", async () => {
  const { peer, iii } = setUp();
  const reader = iii.openReader(ref("read"));
  await settle();
  peer.last.send("one");
  peer.last.drop(1011, "writer lost");
  const seen: unknown[] = [];
  await expect(
    (async () => {
      for await (const frame of reader) seen.push(frame);
    })(),
  ).rejects.toMatchObject({ code: "channel_closed" });
  expect(seen).toEqual(["one"]);
});

test("a slow reader holds the sender back and lets it go again", async () => {
  const { peer, iii } = setUp();
  const reader = iii.openReader(ref("read"));
  await settle();
  const wire = peer.last;
  for (let n = 0; n < 64; n += 1) wire.send(String(n));
  expect(wire.paused).toBe(true);
  let count = 0;
  for await (const _frame of reader) {
    count += 1;
    if (count === 60) break;
  }
  expect(wire.paused).toBe(false);
});

test("leaving the loop closes the channel", async () => {
  const { peer, iii } = setUp();
  const reader = iii.openReader(ref("read"));
  await settle();
  peer.last.send("one");
  for await (const _frame of reader) break;
  await settle();
  expect(peer.last.closed).toMatchObject({ code: 1000 });
});

test("a writer waits for room, keeps order, and closes after its last frame", async () => {
  const { peer, iii } = setUp();
  const writer = iii.openWriter(ref("write"));
  const wire = peer.last;
  wire.buffered = 2_000_000;
  const sent: string[] = [];
  const sends = ["a", "b"].map(async (frame) => {
    await writer.send(JSON.stringify(frame));
    sent.push(frame);
  });
  await settle();
  expect([wire.frames, sent]).toEqual([["a"], []]);
  wire.buffered = 0;
  await Promise.all(sends);
  await writer.close();
  expect(wire.frames).toEqual(["a", "b"]);
  expect(wire.closed).toMatchObject({ code: 1000 });
  expect(writer.signal.aborted).toBe(false);
});

test("a writer learns that its reader is gone", async () => {
  const { peer, iii } = setUp();
  const writer = iii.openWriter(ref("write"));
  await settle();
  peer.last.drop(1006);
  expect(writer.signal.aborted).toBe(true);
  await expect(writer.send("x")).rejects.toMatchObject({ code: "channel_closed" });
  await writer.close();
});

test("the ends of a created channel are not taken before they are used", async () => {
  const { peer, iii } = setUp();
  await settle();
  const bus = peer.last;
  const creating = iii.createChannel();
  await settle();
  answerCreate(bus);
  const channel = await creating;
  await settle();
  expect(peer.connections).toHaveLength(1);
  await channel.writer.send('"x"');
  expect(peer.connections).toHaveLength(2);
});

test("a client holds on to open channels only", async () => {
  const peer = new ScriptedPeer();
  const ended: string[] = [];
  const dialer: Dialer = {
    address: peer.address,
    dial(path, handlers) {
      const wire = peer.dial(path, handlers);
      return { ...wire, close: (code) => wire.close(code), terminate: () => void ended.push(path) };
    },
  };
  const iii = connect({ dialer, clock: new ManualClock(), random: seededRandom() });
  const done = iii.openWriter(ref("write"));
  await done.close();
  iii.openWriter({ ...ref("write"), channel_id: "c2" });
  await settle();
  await iii.close();
  expect(ended).toEqual(["/ws/channels/c2?key=k&dir=write"]);
});

function answerCreate(bus: PeerConnection): void {
  const [call] = bus.of("invokefunction");
  const result = { writer: ref("write"), reader: ref("read") };
  bus.send({ type: "invocationresult", invocation_id: call?.["invocation_id"], function_id: "engine::channels::create", result });
}
