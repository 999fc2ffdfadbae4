// The hash that binds an approval to the arguments that were shown. Node only, hence its own entry.
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/** SHA-256, hex, over RFC 8785 JSON of the call's session, id, function and arguments. Key order and spacing do not matter. */
export function argsSha256(call: { session_id: string; function_call_id: string; function_id: string; args: unknown }): string {
  const { session_id, function_call_id, function_id, args } = call;
  const text = canonicalize({ session_id, function_call_id, function_id, args: args ?? null });
  return createHash("sha256")
    .update(text ?? "")
    .digest("hex");
}
