// A frame as its envelope (every key but the payload, parsed) plus the untouched bytes of its payload.
// One full scan per frame; it never looks inside the payload beyond finding where it ends. Works in browsers.
import { BusError } from "../errors.ts";

export interface Envelope {
  /** Every envelope key except `data` and `result`. */
  readonly head: Record<string, unknown>;
  /** The JSON bytes of `data` (of `result` in an `invocationresult`); undefined when the key is absent. A view, not a copy. */
  readonly payload: Uint8Array | undefined;
}

/** Where one value of the envelope stands. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** The same with the position of its key. */
interface Member extends Span {
  readonly key: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Node's own encoder is several times faster for short text. */
const { Buffer: nodeBuffer } = globalThis as { Buffer?: { from(text: string, encoding: "utf8"): Uint8Array } };
const encode = (text: string): Uint8Array => nodeBuffer?.from(text, "utf8") ?? encoder.encode(text);

function invalid(reason: string, at?: number): BusError {
  const where = at === undefined ? "" : ` at byte ${at}`;
  return new BusError("invalid_frame", `the frame is not a protocol message: ${reason}${where}`);
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at;
  while (isSpace(bytes[i])) i += 1;
  return i;
}

/** Strings of the envelope are mostly short: below this length a loop finds the end sooner than a native search. */
const SHORT = 64;

/** The position of the first quote at or after `at`; -1 when there is none. */
function findQuote(bytes: Uint8Array, at: number): number {
  const near = Math.min(bytes.length, at + SHORT);
  for (let i = at; i < near; i += 1) if (bytes[i] === QUOTE) return i;
  return bytes.indexOf(QUOTE, near);
}

/** The position after the string that opens at `at`. */
function skipString(bytes: Uint8Array, at: number): number {
  let close = findQuote(bytes, at + 1);
  while (close !== -1) {
    let slashes = 0;
    while (bytes[close - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return close + 1;
    close = findQuote(bytes, close + 1);
  }
  throw invalid("a string does not end", at);
}

/** Non-zero for the bytes that a scan of a container must stop at. */
const STOPS = new Uint8Array(256);
for (const byte of [QUOTE, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET]) STOPS[byte] = 1;

/** The position of the first byte at or after `at` that is a bracket or a quote. */
function nextStop(bytes: Uint8Array, at: number): number {
  let i = at;
  while (i < bytes.length && STOPS[bytes[i] as number] === 0) i += 1;
  return i;
}

/** The position after the object or array that opens at `at`; brackets must pair by kind. */
function skipContainer(bytes: Uint8Array, at: number): number {
  const closers: number[] = [];
  for (let i = at; i < bytes.length; ) {
    i = nextStop(bytes, i);
    const byte = bytes[i];
    if (byte === QUOTE) {
      i = skipString(bytes, i);
      continue;
    }
    if (byte === OPEN_BRACE) closers.push(CLOSE_BRACE);
    else if (byte === OPEN_BRACKET) closers.push(CLOSE_BRACKET);
    else if (closers.pop() !== byte) throw invalid("brackets do not pair", i);
    i += 1;
    if (closers.length === 0) return i;
  }
  throw invalid("an object or array does not end", at);
}

const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** The position after the number, `true`, `false` or `null` that starts at `at`; what stands there is checked by `checkScalar`. */
function skipScalar(bytes: Uint8Array, at: number): number {
  let i = at;
  while (i < bytes.length && bytes[i] !== COMMA && bytes[i] !== CLOSE_BRACE && !isSpace(bytes[i])) i += 1;
  if (i === at) throw invalid("a value is missing", at);
  return i;
}

/** A payload's scalar is copied without being parsed, so it is checked here; other values are parsed with the head. */
function checkScalar(bytes: Uint8Array, { from, to }: Span): void {
  const first = bytes[from];
  if (first === QUOTE || first === OPEN_BRACE || first === OPEN_BRACKET) return;
  if (!SCALAR.test(utf8.decode(bytes.subarray(from, to)))) throw invalid("a value is malformed", from);
}

function skipValue(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === QUOTE) return skipString(bytes, at);
  if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return skipContainer(bytes, at);
  return skipScalar(bytes, at);
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

/** A key as a parser reads it: escapes are resolved, so that `"d\u0061ta"` is `data`. */
function readKey(bytes: Uint8Array, from: number, to: number): string {
  return usualKey(bytes, from + 1, to - 1) ?? (JSON.parse(utf8.decode(bytes.subarray(from, to))) as string);
}

/** More keys than any message has; it also bounds the search for doubles. */
const MAX_KEYS = 256;

interface Found {
  readonly keys: string[];
  data: Member | undefined;
  result: Member | undefined;
}

/** Finds the payload spans and checks that no key of the envelope stands twice. */
function scan(bytes: Uint8Array): Found {
  const found: Found = { keys: [], data: undefined, result: undefined };
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

/** Notes the member that starts at `at`; the position after its value. */
function scanMember(bytes: Uint8Array, at: number, found: Found): number {
  if (bytes[at] !== QUOTE) throw invalid("a key is missing", at);
  const afterKey = skipString(bytes, at);
  const key = readKey(bytes, at, afterKey);
  if (found.keys.includes(key)) throw invalid(`the key '${key}' stands twice`, at);
  if (found.keys.push(key) > MAX_KEYS) throw invalid(`it has more than ${MAX_KEYS} keys`, at);
  const colon = skipSpace(bytes, afterKey);
  if (bytes[colon] !== COLON) throw invalid("a ':' is missing", colon);
  const from = skipSpace(bytes, colon + 1);
  const to = skipValue(bytes, from);
  if (key === "data" || key === "result") {
    found[key] = { key: at, from, to };
    checkScalar(bytes, { from, to });
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
  const before = utf8.decode(bytes.subarray(0, member.key)).trimEnd();
  const after = utf8.decode(bytes.subarray(member.to));
  if (before.endsWith(",")) return before.slice(0, -1) + after;
  return before + after.replace(/^\s*,/, "");
}

function parseHead(bytes: Uint8Array, data: Member | undefined, result: Member | undefined): Record<string, unknown> {
  const member = data ?? result;
  if (member === undefined) return JSON.parse(utf8.decode(bytes)) as Record<string, unknown>;
  const head = JSON.parse(textWithout(bytes, member)) as Record<string, unknown>;
  if (data !== undefined && result !== undefined) delete head["result"];
  return head;
}

/**
 * Splits a frame into head and payload.
 * @throws BusError `invalid_frame` for anything but one JSON object whose keys are unique.
 */
export function decodeFrame(bytes: Uint8Array): Envelope {
  try {
    const { data, result } = scan(bytes);
    const head = parseHead(bytes, data, result);
    const span = head["type"] === "invocationresult" ? result : data;
    return { head, payload: span === undefined ? undefined : bytes.subarray(span.from, span.to) };
  } catch (thrown) {
    if (thrown instanceof BusError) throw thrown;
    throw invalid(thrown instanceof Error ? thrown.message : "unreadable");
  }
}

/** Adds one member at the end of an object payload, where it wins in every parser over an earlier one of the same name. */
export interface Splice {
  readonly key: string;
  readonly value: string;
}

/** The payload's bytes without the closing brace, and what closes it; undefined when the payload is no object. */
function openObject(payload: Uint8Array, splice: Splice): { body: Uint8Array; tail: string } | undefined {
  if (payload[0] !== OPEN_BRACE) return undefined;
  const body = payload.subarray(0, payload.length - 1);
  let last = body.length - 1;
  while (isSpace(body[last])) last -= 1;
  const comma = last === 0 ? "" : ",";
  return { body, tail: `${comma}${JSON.stringify(splice.key)}:${JSON.stringify(splice.value)}}` };
}

/** Payloads up to this size are cheaper to pass through text than to copy between buffers. */
const SMALL = 2_048;

/** A frame as the text before the payload's bytes, those bytes as they came, and the text after them. */
export interface FrameParts {
  readonly before: string;
  readonly body: Uint8Array;
  readonly after: string;
}

const NOTHING = new Uint8Array(0);

/** A frame to be: the head as given, then the payload, last and unchanged but for the optional splice into an object. */
export function frameParts(head: object, payloadKey?: "data" | "result", payload?: Uint8Array | string, splice?: Splice): FrameParts {
  const text = JSON.stringify(head);
  if (payloadKey === undefined || payload === undefined) return { before: text, body: NOTHING, after: "" };
  const before = `${text.slice(0, -1)}${text === "{}" ? "" : ","}"${payloadKey}":`;
  if (typeof payload === "string") {
    if (splice === undefined) return { before: `${before}${payload}}`, body: NOTHING, after: "" };
    return frameParts(head, payloadKey, encode(payload), splice);
  }
  const opened = splice === undefined ? undefined : openObject(payload, splice);
  return opened === undefined ? { before, body: payload, after: "}" } : { before, body: opened.body, after: `${opened.tail}}` };
}

/** The frame as one buffer. */
export function joinParts({ before, body, after }: FrameParts): Uint8Array {
  if (body.length === 0) return encode(before + after);
  if (body.length <= SMALL) return encode(before + utf8.decode(body) + after);
  const start = encode(before);
  const end = encode(after);
  const out = new Uint8Array(start.length + body.length + end.length);
  out.set(start, 0);
  out.set(body, start.length);
  out.set(end, start.length + body.length);
  return out;
}

/** A frame's bytes, as `frameParts` puts them together. */
export function encodeFrame(head: object, payloadKey?: "data" | "result", payload?: Uint8Array | string, splice?: Splice): Uint8Array {
  return joinParts(frameParts(head, payloadKey, payload, splice));
}
