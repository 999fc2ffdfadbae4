// What a wire tells of itself when it opens, and how a frame's parts leave on it.
import type { Wire } from "@iii/sdk";
import { type FrameParts, joinParts, type Principal } from "@iii/sdk/protocol";

export interface WireMeta {
  /** The upgrade's Origin header: whoever sent one is a browser. */
  readonly origin?: string | undefined;
  readonly remote?: string | undefined;
  /** For wires inside this process: whose they are, by construction. Sockets show a token in their path. */
  readonly principal?: Principal | undefined;
}

/** The message's size in bytes. */
export function sendParts(wire: Wire, parts: FrameParts): number {
  if (wire.sendParts !== undefined) return wire.sendParts(parts.before, parts.body, parts.after);
  const bytes = joinParts(parts);
  wire.send(bytes, false);
  return bytes.length;
}
