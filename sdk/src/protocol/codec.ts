// How a frame is read: quickly when our own client has written it, else by the full scan. A property holds both equal.
import { type Envelope, readEnvelope } from "./envelope.ts";
import { quickEnvelope } from "./quick.ts";

/**
 * Splits a frame into head and payload.
 * @throws BusError `invalid_frame` for anything but one JSON object whose keys are unique.
 */
export function decodeFrame(bytes: Uint8Array): Envelope {
  return quickEnvelope(bytes) ?? readEnvelope(bytes);
}
