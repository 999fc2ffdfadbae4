// One suite that every provider passes: what must hold whatever the vendor's wire looks like.
import type { AssistantMessageEvent } from "@iii/contracts";
import { expect, test } from "vitest";
import type { ProviderSettings, ProviderSpec } from "../spec.ts";
import { bytes, type Played, type PlayOptions, play } from "./play.ts";

export interface Recording {
  readonly title: string;
  /** A whole event stream, with LF line ends. */
  readonly sse: string;
  readonly options?: PlayOptions;
}

const terminal = (event: AssistantMessageEvent) => event.type === "done" || event.type === "error";

/** Consecutive deltas of one block as one: what may differ by how bytes were cut is only how many there are. */
function merged(events: readonly AssistantMessageEvent[]): unknown[] {
  const out: Record<string, unknown>[] = [];
  for (const event of events) {
    const last = out.at(-1);
    const same = last !== undefined && "delta" in event && last["type"] === event.type && last["block"] === event.block;
    if (same) last["delta"] = `${last["delta"]}${event.delta}`;
    else out.push({ ...event });
  }
  return out;
}

/** Checks that deltas and ends belong to open blocks and that none stays open. */
function expectBlocks(events: readonly AssistantMessageEvent[]): void {
  const open = new Set<string>();
  for (const event of events) {
    if (!("block" in event)) continue;
    const [kind = "", step = ""] = event.type.split("_");
    const key = `${kind}:${event.block}`;
    if (step === "start") open.add(key);
    else expect(open.has(key), `${event.type} of an open block`).toBe(true);
    if (step === "end") open.delete(key);
  }
  expect([...open]).toEqual([]);
}

function expectWhole({ events }: Played): void {
  expect(events[0]).toEqual({ type: "start" });
  expect(events.filter(terminal)).toHaveLength(1);
  expect(terminal(events.at(-1) ?? { type: "start" })).toBe(true);
  expectBlocks(events);
  expect(JSON.stringify(events)).not.toContain('"partial"');
}

/** A cut answer: one transient error without calls, or all that the whole stream had. */
function expectCut(cut: Played, whole: Played, at: number): void {
  expect(cut.events.filter(terminal), `cut at ${at}`).toHaveLength(1);
  if (cut.message.stop_reason !== "error") {
    expect(merged(body(cut)), `cut at ${at}`).toEqual(merged(body(whole)));
    return;
  }
  expectWhole(cut);
  expect(cut.message.error_kind).toBe("transient");
  expect(cut.message.content.some((block) => block.type === "function_call")).toBe(false);
}

/** The events of the content alone, without usage and ending. */
function body({ events }: Played): AssistantMessageEvent[] {
  return events.filter((event) => event.type !== "usage" && event.type !== "stop" && event.type !== "done");
}

type Play = (recording: Recording, chunks: readonly Uint8Array[]) => Promise<Played>;

/** Registers the suite's tests for a provider and its recordings, all of which end well. */
export function conformance<S, C extends ProviderSettings>(spec: ProviderSpec<S, C>, recordings: readonly Recording[]): void {
  const from = (recording: Recording, chunks: readonly Uint8Array[]) =>
    play(spec, [{ chunks }], { ...recording.options, config: { max_retries: 0 } });
  framings(from, recordings);

  test.each(recordings)("$title: whole, in order, ended once", async (recording) => {
    const played = await from(recording, [bytes(recording.sse)]);
    expectWhole(played);
    expect(played.events.at(-1)).toEqual({ type: "done", message: played.message });
  });

  test.each(recordings)("$title: the same bytes split at every offset give the same events", async (recording) => {
    const all = bytes(recording.sse);
    const whole = await from(recording, [all]);
    // Compared as text first: a deep comparison per offset would take most of the time.
    const told = JSON.stringify(whole.events);
    for (let at = 0; at <= all.length; at += 1) {
      const split = await from(recording, [all.subarray(0, at), all.subarray(at)]);
      if (JSON.stringify(split.events) !== told) expect(split.events, `split at ${at}`).toEqual(whole.events);
    }
    const single = await from(
      recording,
      Array.from(all, (byte) => Uint8Array.of(byte)),
    );
    expect(single.events).toEqual(whole.events);
  });

  test.each(recordings)("$title: cut anywhere, it ends in one error or is complete, and runs no tool", async (recording) => {
    const all = bytes(recording.sse);
    const whole = await from(recording, [all]);
    for (let at = 0; at < all.length; at += 1) expectCut(await from(recording, [all.subarray(0, at)]), whole, at);
  });
}

/** What servers do with the framing of the same events. */
function framings(from: Play, recordings: readonly Recording[]): void {
  test.each(recordings)("case 38 case 40 $title: CRLF, lone CR, no space, a BOM, comments and pings change nothing", async (recording) => {
    const whole = await from(recording, [bytes(recording.sse)]);
    const noise = ": keep-alive\n\nid: 7\n\nevent: ping\ndata:\n\nevent: keepalive\ndata: {}\n\ndata:\n\nretry: 10\n\n";
    for (const variant of [
      recording.sse.replaceAll("\n", "\r\n"),
      recording.sse.replaceAll("\n", "\r"),
      recording.sse.replaceAll("data: ", "data:"),
      `\ufeff${recording.sse}`,
      recording.sse.replaceAll("\n\n", `\n\n${noise}`),
    ]) {
      expect((await from(recording, [bytes(variant)])).events).toEqual(whole.events);
    }
  });

  test.each(recordings)("K1.9 $title: events with one newline between them, or several in one, are read", async (recording) => {
    const whole = await from(recording, [bytes(recording.sse)]);
    const datas = [...recording.sse.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => data);
    for (const variant of [
      recording.sse.replaceAll("\n\n", "\n"),
      datas.map((data) => `data: ${data}\n`).join(""),
      `data: ${datas.join("")}\n\n`,
      `data: ${datas.join(" ")}\n\n`,
      datas.map((data) => `data: data: ${data}\n\n`).join(""),
    ]) {
      expect((await from(recording, [bytes(variant)])).events).toEqual(whole.events);
    }
  });

  test.each(recordings)("K1.7 $title: an event that nobody knows spoils the answer", async (recording) => {
    const noisy = recording.sse.replaceAll("\n\n", '\n\nevent: novelty\ndata: {"type":"novelty","nested":{"a":1}}\n\n');
    const { message } = await from(recording, [bytes(noisy)]);
    expect(message.stop_reason).toBe("error");
    expect(message.content.some((block) => block.type === "function_call")).toBe(false);
  });
}
