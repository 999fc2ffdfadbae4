// A frame as its envelope (every key but the payload, parsed) plus the untouched bytes of its payload.
// One full scan per frame; it never looks inside the payload beyond finding where it ends. Works in browsers.
import { BusError } from "../errors.ts";
import { CLOSE_BRACE, COLON, COMMA, checkScalar, invalid, OPEN_BRACE, QUOTE, skipSpace, skipString, skipValue } from "./scan.ts";
import { decode } from "./utf8.ts";

export interface Envelope {
  /** Every envelope key except `data` and `result`. */
  readonly head: Record<string, unknown>;
  /** The JSON bytes of `data` (of `result` in an `invocationresult`); undefined when the key is absent. A view, not a copy. */
  readonly payload: Uint8Array | undefined;
}

/** One member of the envelope: its key, and where key and value stand. */
interface Member {
  readonly key: string;
  readonly at: number;
  readonly from: number;
  readonly to: number;
}

/** The usual keys by length and first letter, so that most keys need no new string. */
const USUAL = new Map<number, string>();
for (const key of [
  ..."type invocation_id function_id data result traceparent baggage action metadata timeout_ms parent origin context error".split(" "),
  ..."id description config trigger_type request_format response_format".split(" "),
])
  USUAL.set(key.length * 256 + key.charCodeAt(0), key);

function usualKey(bytes: Uint8Array, from: number, to: number): string | undefined {
  const key = USUAL.get((to - from) * 256 + (bytes[from] as number));
  if (key === undefined) return undefined;
  for (let i = 1; i < key.length; i += 1) if (bytes[from + i] !== key.charCodeAt(i)) return undefined;
  return key;
}

/** An unusual key as a parser reads it: escapes are resolved, so that `"d\u0061ta"` is `data`. */
function readKey(bytes: Uint8Array, from: number, to: number): string {
  return JSON.parse(decode(bytes, from, to)) as string;
}

/** More keys than any message has; it also bounds the search for doubles. */
const MAX_KEYS = 256;

/** Finds the end of the value that starts at `at`. */
export type Skip = (bytes: Uint8Array, at: number) => number;

interface Found {
  readonly skip: Skip;
  readonly members: Member[];
  data: Member | undefined;
  result: Member | undefined;
  /** Every key is a usual one, so that none of them means anything to an object itself. */
  usual: boolean;
}

/** Finds the members and checks that no key stands twice. */
function scan(bytes: Uint8Array, skip: Skip): Found {
  const found: Found = { skip, members: [], data: undefined, result: undefined, usual: true };
  let i = skipSpace(bytes, 0);
  if (bytes[i] !== OPEN_BRACE) throw invalid("it is not a JSON object", i);
  i = skipSpace(bytes, i + 1);
  if (bytes[i] === CLOSE_BRACE) return ended(bytes, i, found);
  for (;;) {
    i = skipSpace(bytes, scanMember(bytes, i, found));
    if (bytes[i] === CLOSE_BRACE) return ended(bytes, i, found);
    if (bytes[i] !== COMMA) throw invalid("a ',' is missing", i);
    i = skipSpace(bytes, i + 1);
  }
}

function standsTwice(members: readonly Member[], key: string): boolean {
  for (let i = 0; i < members.length; i += 1) if (members[i]?.key === key) return true;
  return false;
}

/** Notes the member that starts at `at`; the position after its value. */
function scanMember(bytes: Uint8Array, at: number, found: Found): number {
  if (bytes[at] !== QUOTE) throw invalid("a key is missing", at);
  const afterKey = skipString(bytes, at);
  const usual = usualKey(bytes, at + 1, afterKey - 1);
  const key = usual ?? readKey(bytes, at, afterKey);
  if (usual === undefined) found.usual = false;
  if (standsTwice(found.members, key)) throw invalid(`the key '${key}' stands twice`, at);
  const colon = skipSpace(bytes, afterKey);
  if (bytes[colon] !== COLON) throw invalid("a ':' is missing", colon);
  const from = skipSpace(bytes, colon + 1);
  const to = found.skip(bytes, from);
  const member = { key, at, from, to };
  if (found.members.push(member) > MAX_KEYS) throw invalid(`it has more than ${MAX_KEYS} keys`, at);
  if (key === "data" || key === "result") {
    found[key] = member;
    checkScalar(bytes, from, to);
  }
  return to;
}

function ended(bytes: Uint8Array, brace: number, found: Found): Found {
  const rest = skipSpace(bytes, brace + 1);
  if (rest < bytes.length) throw invalid("something follows the object", rest);
  return found;
}

/** The text of the frame without one member: small, and strict JSON when the envelope is. */
function textWithout(bytes: Uint8Array, member: Member): string {
  const before = decode(bytes, 0, member.at).trimEnd();
  const after = decode(bytes, member.to, bytes.length);
  if (before.endsWith(",")) return before.slice(0, -1) + after;
  return before + after.replace(/^\s*,/, "");
}

function parseHead(bytes: Uint8Array, { members, data, result, usual }: Found): Record<string, unknown> {
  const member = data ?? result;
  if (usual && (member === undefined || member === members.at(-1))) {
    const head = readHead(bytes, members, member?.at ?? bytes.length);
    if (head !== undefined) return head;
  }
  if (member === undefined) return JSON.parse(decode(bytes, 0, bytes.length)) as Record<string, unknown>;
  const head = JSON.parse(textWithout(bytes, member)) as Record<string, unknown>;
  if (data !== undefined && result !== undefined) delete head["result"];
  return head;
}

/** The members before `end`, each read by itself; undefined when text and bytes do not correspond one to one. */
function readHead(bytes: Uint8Array, members: readonly Member[], end: number): Record<string, unknown> | undefined {
  const text = decode(bytes, 0, end);
  if (text.length !== end) return undefined;
  const head: Record<string, unknown> = {};
  for (const { key, at, from, to } of members) if (at < end && key !== "result") head[key] = readValue(text, from, to);
  return head;
}

/** A string that stands for itself, and a number that needs no parser. */
const PLAIN = /"[ !#-[\]-~]*"/y;
const COUNT = /(?:0|[1-9]\d{0,14})/y;

function readValue(text: string, from: number, to: number): unknown {
  PLAIN.lastIndex = from;
  if (PLAIN.test(text) && PLAIN.lastIndex === to) return text.slice(from + 1, to - 1);
  COUNT.lastIndex = from;
  if (COUNT.test(text) && COUNT.lastIndex === to) return Number(text.slice(from, to));
  return JSON.parse(text.slice(from, to));
}

/**
 * Splits a frame into head and payload.
 * @throws BusError `invalid_frame` for anything but one JSON object whose keys are unique.
 */
export function readEnvelope(bytes: Uint8Array, skip: Skip = skipValue): Envelope {
  try {
    const found = scan(bytes, skip);
    const head = parseHead(bytes, found);
    const span = head["type"] === "invocationresult" ? found.result : found.data;
    return { head, payload: span === undefined ? undefined : bytes.subarray(span.from, span.to) };
  } catch (thrown) {
    if (thrown instanceof BusError) throw thrown;
    throw invalid(thrown instanceof Error ? thrown.message : "unreadable");
  }
}
