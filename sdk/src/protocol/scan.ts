// Where the values of a JSON text end, found on its bytes without looking further into them. Works in browsers.
import { BusError } from "../errors.ts";
import { decode } from "./utf8.ts";

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
export const COMMA = 0x2c;
export const COLON = 0x3a;

export function invalid(reason: string, at?: number): BusError {
  const where = at === undefined ? "" : ` at byte ${at}`;
  return new BusError("invalid_frame", `the frame is not a protocol message: ${reason}${where}`);
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

export function skipSpace(bytes: Uint8Array, at: number): number {
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
export function skipString(bytes: Uint8Array, at: number): number {
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

/** The closers that a scan of a container waits for, innermost last. Grows as payloads need it. */
let closers = new Uint8Array(256);

const isOpener = (byte: number | undefined): boolean => byte === OPEN_BRACE || byte === OPEN_BRACKET;

function deeper(): void {
  const more = new Uint8Array(closers.length * 2);
  more.set(closers);
  closers = more;
}

/** The position after the object or array that opens at `at`; brackets must pair by kind. */
function skipContainer(bytes: Uint8Array, at: number): number {
  let depth = 0;
  for (let i = at; i < bytes.length; ) {
    i = nextStop(bytes, i);
    const byte = bytes[i];
    if (byte === QUOTE) {
      i = skipString(bytes, i);
      continue;
    }
    i += 1;
    if (isOpener(byte)) {
      if (depth === closers.length) deeper();
      // Both closers stand two after their openers.
      closers[depth] = (byte as number) + 2;
      depth += 1;
      continue;
    }
    depth -= 1;
    if (closers[depth] !== byte) throw invalid("brackets do not pair", i - 1);
    if (depth === 0) return i;
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
export function checkScalar(bytes: Uint8Array, from: number, to: number): void {
  const first = bytes[from];
  if (first === QUOTE || first === OPEN_BRACE || first === OPEN_BRACKET) return;
  if (!SCALAR.test(decode(bytes, from, to))) throw invalid("a value is malformed", from);
}

export function skipValue(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === QUOTE) return skipString(bytes, at);
  if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return skipContainer(bytes, at);
  return skipScalar(bytes, at);
}
