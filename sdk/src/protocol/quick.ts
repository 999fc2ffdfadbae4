// Reads the calls and results that stand exactly as our own client writes them; declines everything else. What it reads, it reads as the
// full scan does: no key can stand twice in the only order that it knows, and the payload's end is found by the same scan.
import type { Envelope, Skip } from "./envelope.ts";
import { CLOSE_BRACE, checkScalar, skipValue } from "./scan.ts";
import { latin1 } from "./utf8.ts";

/** A text that stands for itself, as a group. */
const TEXT = '"([ !#-[\\]-~]*)"';
const optional = (key: string, value: string): string => `(?:,"${key}":${value})?`;

const TRACE = optional("traceparent", TEXT) + optional("baggage", TEXT);
const CALL = new RegExp(
  `\\{"type":"invokefunction"${optional("invocation_id", TEXT)},"function_id":${TEXT}${TRACE}${optional("timeout_ms", "(0|[1-9]\\d{0,14})")}${optional("parent", TEXT)}${optional("origin", TEXT)}${optional("session_id", TEXT)},"data":(?!\\s)`,
  "y",
);
const RESULT = new RegExp(`\\{"type":"invocationresult","invocation_id":${TEXT},"function_id":${TEXT}${TRACE},"result":(?!\\s)`, "y");

/** Longer heads are the full scan's. */
const MAX_HEAD = 1_024;
/** Where the type of a frame tells a call from a result: `{"type":"invo…`. */
const TELLING = '{"type":"invo'.length;
const LETTER_K = 0x6b;
const LETTER_C = 0x63;

/** Undefined for everything but a call or a result that our client has written. @throws BusError `invalid_frame` as the full scan does. */
export function quickEnvelope(bytes: Uint8Array, skip: Skip = skipValue): Envelope | undefined {
  const letter = bytes[TELLING];
  if (letter !== LETTER_K && letter !== LETTER_C) return undefined;
  const text = latin1(bytes, Math.min(bytes.length, MAX_HEAD));
  if (text === undefined) return undefined;
  const [form, headOf] = letter === LETTER_K ? [CALL, callHead] : [RESULT, resultHead];
  form.lastIndex = 0;
  const found = form.exec(text);
  if (found === null) return undefined;
  const payload = payloadOf(bytes, form.lastIndex, skip);
  return payload === undefined ? undefined : { head: headOf(found), payload };
}

type Head = Record<string, unknown>;

/** The value that starts at `from` and ends the frame. */
function payloadOf(bytes: Uint8Array, from: number, skip: Skip): Uint8Array | undefined {
  const to = skip(bytes, from);
  if (bytes[to] !== CLOSE_BRACE || to + 1 !== bytes.length) return undefined;
  checkScalar(bytes, from, to);
  return bytes.subarray(from, to);
}

function callHead([, invocation_id, function_id, traceparent, baggage, timeout_ms, parent, origin, session_id]: RegExpExecArray): Head {
  const head: Head = { type: "invokefunction" };
  if (invocation_id !== undefined) head["invocation_id"] = invocation_id;
  head["function_id"] = function_id;
  if (traceparent !== undefined) head["traceparent"] = traceparent;
  if (baggage !== undefined) head["baggage"] = baggage;
  if (timeout_ms !== undefined) head["timeout_ms"] = Number(timeout_ms);
  if (parent !== undefined) head["parent"] = parent;
  if (origin !== undefined) head["origin"] = origin;
  if (session_id !== undefined) head["session_id"] = session_id;
  return head;
}

function resultHead([, invocation_id, function_id, traceparent, baggage]: RegExpExecArray): Head {
  const head: Head = { type: "invocationresult", invocation_id, function_id };
  if (traceparent !== undefined) head["traceparent"] = traceparent;
  if (baggage !== undefined) head["baggage"] = baggage;
  return head;
}
