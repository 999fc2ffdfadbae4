// A frame's bytes from its head and the untouched bytes of its payload, which stand last. Works in browsers.
import { headText } from "./heads.ts";
import { decode, encode } from "./utf8.ts";

const SPACES = new Set<number | undefined>([0x20, 0x0a, 0x0d, 0x09]);

/** Adds one member at the end of an object payload, where it wins in every parser over an earlier one of the same name. */
export interface Splice {
  readonly key: string;
  readonly value: string;
}

/** The last member that was written, with a comma before it and a brace after: calls of one connection follow each other. */
let known = { key: "", value: "", text: ',"":""}' };

function memberText({ key, value }: Splice): string {
  if (known.value !== value || known.key !== key) known = { key, value, text: `,${JSON.stringify(key)}:${JSON.stringify(value)}}` };
  return known.text;
}

/** The payload's bytes without the closing brace, and what closes it; undefined when the payload is no object. */
function openObject(payload: Uint8Array, splice: Splice): { body: Uint8Array; tail: string } | undefined {
  if (payload[0] !== 0x7b) return undefined;
  const body = payload.subarray(0, payload.length - 1);
  let last = body.length - 1;
  while (SPACES.has(body[last])) last -= 1;
  const member = memberText(splice);
  return { body, tail: last === 0 ? member.slice(1) : member };
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
  const text = headText(head);
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
  if (body.length <= SMALL) return encode(before + decode(body, 0, body.length) + after);
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
