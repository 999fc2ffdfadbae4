// How a frame is read: quickly when our own client has written it, else by the full scan; large payloads by vector instructions.
// Properties hold the quick ways equal to the plain ones.
import { type Envelope, readEnvelope } from "./envelope.ts";
import { quickEnvelope } from "./quick.ts";
import { skipLarge } from "./vector.ts";

/**
 * Splits a frame into head and payload.
 * @throws BusError `invalid_frame` for anything but one JSON object whose keys are unique.
 */
export function decodeFrame(bytes: Uint8Array): Envelope {
  return quickEnvelope(bytes, skipLarge) ?? readEnvelope(bytes, skipLarge);
}
