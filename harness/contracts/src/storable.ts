// What may become content: a message, a call's arguments, a result. Asked once, where the content enters. Pure; no Node.
import { type ErrorCode, isTooDeep, MAX_DEPTH } from "@iii/sdk";

/** How deep content may nest: it is stored and sent inside rows and frames, which have the bus's `MAX_DEPTH` themselves. */
export const CONTENT_DEPTH = MAX_DEPTH - 32;

/** UTF-8 bytes of the value as JSON. */
export function bytesOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value) ?? "").length;
}

/** Why `value` cannot be content of at most `bytes`; undefined when it can. Never throws and never recurses. */
export function unstorable(value: unknown, bytes: number): { readonly code: ErrorCode; readonly message: string } | undefined {
  if (isTooDeep(value, CONTENT_DEPTH)) return { code: "payload_too_deep", message: `it nests more than ${CONTENT_DEPTH} levels deep` };
  const size = bytesOf(value);
  if (size > bytes) return { code: "payload_too_large", message: `it has ${size} bytes; ${bytes} are allowed` };
  return undefined;
}
