// Values that built-ins take from outside nest `MAX_DEPTH` levels at most: they are written again inside of events and lists.
import { BusError, isTooDeep, MAX_DEPTH } from "@iii/sdk";

export function tooDeep(what: string): BusError {
  return new BusError("payload_too_deep", `${what} nests deeper than ${MAX_DEPTH} levels`, { details: { limit: MAX_DEPTH } });
}

/** @throws BusError `payload_too_deep` */
export function checkDepth(value: unknown, what: string): void {
  if (isTooDeep(value)) throw tooDeep(what);
}
