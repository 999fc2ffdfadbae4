import { testBus } from "@iii/engine/testing";
import type { Wire, WireHandlers } from "@iii/sdk";
import { settle } from "@iii/sdk/testing";
import { expect, test } from "vitest";
import { Pipe } from "../src/builtin/channel/pipe.ts";

async function read(reader: AsyncIterable<string | Uint8Array>): Promise<(string | Uint8Array)[]> {
  const frames: (string | Uint8Array)[] = [];
  for await (const frame of reader) frames.push(frame);
  return frames;
}

test("frames arrive in order with their boundaries and kinds, also those written before the reader came", async () => {
  await using bus = await testBus([]);
  const writing = await bus.connect("writer");
  const reading = await bus.connect("reader");
  const { writerRef, readerRef } = await writing.createChannel();
  const writer = writing.openWriter(writerRef);
  await writer.send("one");
  await writer.send(new Uint8Array([0, 255, 123]));
  const frames = read(reading.openReader(readerRef));
  await writer.send("{}");
  await writer.close();
  expect(await frames).toEqual(["one", new Uint8Array([0, 255, 123]), "{}"]);
});

test("a lost writer is told apart from one that closed", async () => {
  await using bus = await testBus([]);
  const writing = await bus.connect("writer");
  const reading = await bus.connect("reader");
  const { writerRef, readerRef } = await writing.createChannel();
  const writer = writing.openWriter(writerRef);
  const reader = reading.openReader(readerRef);
  const frames = read(reader);
  frames.catch(() => undefined);
  await writer.send("half a");
  await bus.settle();
  await writing.close({ drain_ms: 0 });
  await expect(frames).rejects.toMatchObject({ code: "channel_closed" });
});

test("a reader that leaves ends the writer", async () => {
  await using bus = await testBus([]);
  const writing = await bus.connect("writer");
  const reading = await bus.connect("reader");
  const { writerRef, readerRef } = await writing.createChannel();
  const writer = writing.openWriter(writerRef);
  const reader = reading.openReader(readerRef);
  await writer.send("a");
  for await (const _frame of reader) break;
  await bus.settle();
  expect(writer.signal.aborted).toBe(true);
  await expect(writer.send("b")).rejects.toMatchObject({ code: "channel_closed" });
});

/** A wire whose far end is the test. */
class Probe implements Wire {
  sent: string[] = [];
  ended: [number | undefined, string | undefined] | undefined;
  paused = false;
  buffered = 0;
  handlers: WireHandlers | undefined;
  send(data: Uint8Array | string): void {
    this.sent.push(typeof data === "string" ? data : new TextDecoder().decode(data));
  }
  pause(): void {
    this.paused = true;
  }
  resume(): void {
    this.paused = false;
  }
  close(code?: number, reason?: string): void {
    this.ended ??= [code, reason];
  }
  terminate(): void {}
  write(text: string): void {
    this.handlers?.message(new TextEncoder().encode(text), false);
  }
}

function pipe(limit = 2) {
  let done = 0;
  const made = new Pipe({
    limit,
    created_at: 0,
    done: () => {
      done += 1;
    },
  });
  const join = (direction: "read" | "write") => {
    const probe = new Probe();
    probe.handlers = made.attach(direction, probe);
    return probe;
  };
  return { join, done: () => done };
}

test("a full buffer pauses the writer until the reader takes frames", async () => {
  const { join } = pipe(2);
  const writer = join("write");
  writer.write("1");
  expect(writer.paused).toBe(false);
  writer.write("2");
  expect(writer.paused).toBe(true);
  const reader = join("read");
  await settle(1);
  expect(reader.sent).toEqual(["1", "2"]);
  expect(writer.paused).toBe(false);
  reader.buffered = 10_000_000;
  writer.write("3");
  writer.write("4");
  expect([reader.sent.length, writer.paused]).toEqual([2, true]);
  reader.buffered = 0;
  reader.handlers?.drain?.();
  expect([reader.sent.length, writer.paused]).toEqual([4, false]);
});

test("what was written is delivered before the end, and the channel goes when both sides have", async () => {
  const { join, done } = pipe();
  const writer = join("write");
  writer.write("last");
  writer.handlers?.close(1000, "stream_complete");
  const reader = join("read");
  await settle(1);
  expect(reader.sent).toEqual(["last"]);
  expect(reader.ended?.[0]).toBe(1000);
  expect(done()).toBe(0);
  reader.handlers?.close(1000, "");
  expect(done()).toBe(1);
});

test("each side is taken once, and a lost writer closes the reader with 1011", async () => {
  const { join } = pipe();
  const writer = join("write");
  const second = join("write");
  expect(second.ended?.[0]).toBe(1008);
  const reader = join("read");
  writer.handlers?.close(1006, "");
  await settle(1);
  expect(reader.ended?.[0]).toBe(1011);
});

test("a wrong key, an unknown channel and missing parameters open nothing", async () => {
  await using bus = await testBus([]);
  const { writer } = await bus.call<{ writer: { channel_id: string; access_key: string } }>("engine::channels::create", {});
  const path = (id: string, query: string) => bus.engine.check(`/ws/channels/${id}?${query}`);
  expect(path(writer.channel_id, `key=${writer.access_key}&dir=read`)).toBe(101);
  expect(path(writer.channel_id, "key=wrong&dir=read")).toBe(404);
  expect(path("unknown", `key=${writer.access_key}&dir=read`)).toBe(404);
  expect(path(writer.channel_id, "dir=read")).toBe(400);
  expect(bus.engine.check(`/ws/ws/channels/${writer.channel_id}?key=${writer.access_key}&dir=write`)).toBe(101);
  expect(["/", "/ws", "/ws/", "/otel", "/ws/otel"].map((route) => bus.engine.check(route))).toEqual([101, 101, 101, 101, 101]);
  expect(["/x", "/otel/x", "/channels", "/%2e%2e"].map((route) => bus.engine.check(route))).toEqual([404, 404, 400, 404]);
});

test("a channel that nobody uses is swept", async () => {
  await using bus = await testBus([]);
  const { writer } = await bus.call<{ writer: { channel_id: string; access_key: string } }>("engine::channels::create", {});
  await bus.clock.advance(7 * 60_000);
  expect(bus.engine.check(`/ws/channels/${writer.channel_id}?key=${writer.access_key}&dir=read`)).toBe(404);
});

test("a path that cannot be decoded names no channel; the engine goes on", async () => {
  await using bus = await testBus([]);
  expect(bus.engine.check("/ws/channels/%zz?key=k&dir=read")).toBe(404);
});
