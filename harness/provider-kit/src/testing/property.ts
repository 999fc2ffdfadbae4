// What must hold of every answer of every vendor: whatever is spoiled in it, it comes out the same or as an error, and runs nothing new.
import { expect, test } from "vitest";
import type { ProviderSettings, ProviderSpec } from "../spec.ts";
import { bytes, type Played, play } from "./play.ts";

export interface Transcript {
  readonly title: string;
  /** Whose server answers so, or whose documentation says so. */
  readonly source: string;
  /** The events in order, without the blank lines between them. */
  readonly events: readonly string[];
}

interface Variant {
  readonly what: string;
  readonly events: readonly string[];
  /** Must be an error: nothing that says how the answer ended is left, or something in it cannot be understood. */
  readonly spoiled: boolean;
}

type Json = Record<string, unknown>;

const DATA = /^data: ?(.*)$/m;
const dataOf = (event: string): string => DATA.exec(event)?.[1] ?? "";

function jsonOf(event: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(dataOf(event));
    return typeof value === "object" && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

const asJson = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {});
const firstOf = (value: unknown): Json => asJson(Array.isArray(value) ? value[0] : undefined);

/** The object that holds the event's end word, and under which name, when it has one. */
function wordIn(value: Json): { holder: Json; name: string } | undefined {
  const places: [Json, string][] = [
    [firstOf(value["choices"]), "finish_reason"],
    [asJson(value["delta"]), "stop_reason"],
    [value, "stop_reason"],
  ];
  const found = places.find(([holder, name]) => typeof holder[name] === "string" && holder[name] !== "");
  return found && { holder: found[0], name: found[1] };
}

function isPartOfJson(text: unknown): boolean {
  try {
    return typeof text === "string" && JSON.parse(text) === undefined;
  } catch {
    return true;
  }
}

/** Whether an event starts or ends something. A call that comes whole in one event is a delta: its loss leaves no trace. */
function isBracket(event: string): boolean {
  const value = jsonOf(event);
  if (value === undefined) return dataOf(event) === "[DONE]";
  if (wordIn(value) !== undefined || /^(message|content_block)_(start|stop)$|^message_delta$/.test(String(value["type"]))) return true;
  const call = firstOf(firstOf(value["choices"])["delta"] && asJson(firstOf(value["choices"])["delta"])["tool_calls"]);
  return typeof asJson(call["function"])["name"] === "string" && isPartOfJson(asJson(call["function"])["arguments"]);
}

const withData = (event: string, data: string): string => event.replace(DATA, () => `data: ${data}`);

function changed(event: string, change: (value: Json) => void): string {
  const value = jsonOf(event) ?? {};
  change(value);
  return withData(event, JSON.stringify(value));
}

/** One event in other forms, none of which is what was meant. */
function spoilt(event: string): [string, string][] {
  const value = jsonOf(event);
  if (value === undefined || value["type"] === "ping") return [];
  const inner = ["content_block", "delta"].filter((name) => typeof asJson(value[name])["type"] === "string");
  const word = wordIn(value);
  const words = word === undefined ? [] : ["novelty", "", 7];
  return [
    ["without its last brace", withData(event, dataOf(event).slice(0, -1))],
    ["garbled", withData(event, "\ufffd\ufffd{")],
    ["of unknown type", `data: {"type":"novelty","object":"novelty","value":1}`],
    ...inner.map((name): [string, string] => [
      `with a ${name} of unknown type`,
      changed(event, (copy) => Object.assign(asJson(copy[name]), { type: "novelty" })),
    ]),
    ...words.map((other): [string, string] => [
      `with end word ${JSON.stringify(other)}`,
      changed(event, (copy) => {
        const place = wordIn(copy);
        if (place !== undefined) place.holder[place.name] = other;
      }),
    ]),
  ];
}

function variants({ events }: Transcript): Variant[] {
  const last = events.findLastIndex((event) => wordIn(jsonOf(event) ?? {}) !== undefined);
  return events.flatMap((event, at): Variant[] => {
    const before = events.slice(0, at);
    const after = events.slice(at + 1);
    const half = event.slice(0, Math.floor(event.length / 2));
    return [
      ...spoilt(event).map(([how, other]) => ({ what: `event ${at} ${how}`, events: [...before, other, ...after], spoiled: true })),
      ...(isBracket(event) ? [{ what: `event ${at} removed`, events: [...before, ...after], spoiled: false }] : []),
      { what: `cut before event ${at}`, events: before, spoiled: at <= last },
      { what: `cut inside event ${at}`, events: [...before, half], spoiled: at <= last },
    ];
  });
}

const callsOf = ({ message }: Played): string[] =>
  message.content.flatMap((block) =>
    block.type === "function_call" && block.arguments !== null ? [JSON.stringify([block.function_id, block.arguments])] : [],
  );

/** A call whose arguments cannot be used is answered with an error: it runs as little as an answer that is one. */
const isError = ({ message }: Played): boolean =>
  message.stop_reason === "error" || message.content.some((block) => block.type === "function_call" && block.arguments === null);

function expectHonest(played: Played, whole: Played, { what, spoiled }: Variant): void {
  const known = callsOf(whole);
  const runs = played.message.stop_reason === "error" ? [] : callsOf(played);
  expect(
    runs.filter((call) => !known.includes(call)),
    `${what}: calls that the whole does not have`,
  ).toEqual([]);
  if (played.message.stop_reason === "error") expect(callsOf(played), what).toEqual([]);
  if (isError(played)) return;
  expect(spoiled, `${what}: taken for good`).toBe(false);
  expect([played.message.content, played.message.stop_reason], what).toEqual([whole.message.content, whole.message.stop_reason]);
}

/** Tries every variant of a transcript. */
export async function tryVariants<S, C extends ProviderSettings>(spec: ProviderSpec<S, C>, transcript: Transcript): Promise<void> {
  const answer = (events: readonly string[]) =>
    play(spec, [{ chunks: [bytes(events.map((event) => `${event}\n\n`).join(""))] }], { config: { max_retries: 0 } });
  const whole = await answer(transcript.events);
  expect(whole.message.error_message ?? "", transcript.title).toBe("");
  for (const variant of variants(transcript)) expectHonest(await answer(variant.events), whole, variant);
}

/** Registers one test per transcript. */
export function honest<S, C extends ProviderSettings>(spec: ProviderSpec<S, C>, transcripts: readonly Transcript[]): void {
  test.each(transcripts)("K1 $title ($source): spoiled anywhere, it is the same answer or an error", (transcript) =>
    tryVariants(spec, transcript),
  );
}
