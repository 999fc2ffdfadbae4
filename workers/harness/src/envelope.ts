// Tells a bare payload from an HTTP request whose body it is, for functions that serve both.

import { BusError } from "@iii/sdk";

export interface Request {
  /** The caller came over HTTP: errors must become a status and a body. */
  readonly http: boolean;
  readonly input: unknown;
}

/** `direct` names a field that only the bare payload has; everything else with a `body` is an HTTP request. */
export function unwrap(payload: unknown, direct: string): Request {
  if (typeof payload !== "object" || payload === null) return { http: false, input: payload };
  if (Object.hasOwn(payload, direct) || !("body" in payload)) return { http: false, input: payload };
  const { body } = payload;
  return { http: true, input: typeof body === "string" ? parse(body) : body };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the schema check says what was expected
  }
}

/** @throws BusError `invalid_payload` for a body that is not a JSON object: the schema would only say that it got null. */
export function requireBody({ http, input }: Request): unknown {
  if (http && (typeof input !== "object" || input === null)) {
    throw new BusError("invalid_payload", "the request body must be a JSON object, sent with content-type: application/json");
  }
  return input;
}
