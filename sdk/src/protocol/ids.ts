// Identifiers: the shapes every id must have, checked once at the boundary and compared byte for byte ever after.
import { z } from "zod";

/** A function id: 1 to 256 printable ASCII characters without spaces, e.g. `approval::resolve`. Never trimmed or folded. */
export const FunctionId = z.string().regex(/^[\x21-\x7e]{1,256}$/, "a function id is 1 to 256 printable ASCII characters without spaces");
export type FunctionId = z.infer<typeof FunctionId>;

const KEY_SAFE = /^[\x21-\x2e\x30-\x7e]{1,128}$/;

/** A session id: 1 to 128 printable ASCII characters without spaces and without `/`, which separates parts of state keys. */
export const SessionId = z.string().regex(KEY_SAFE, "a session id is 1 to 128 printable ASCII characters without spaces and without '/'");
export type SessionId = z.infer<typeof SessionId>;

/** A function call id; same shape as a session id. */
export const CallId = z.string().regex(KEY_SAFE, "a call id is 1 to 128 printable ASCII characters without spaces and without '/'");
export type CallId = z.infer<typeof CallId>;

/** A message id or idempotency key chosen by a client; same shape as a session id. */
export const MessageId = z.string().regex(KEY_SAFE, "a message id is 1 to 128 printable ASCII characters without spaces and without '/'");
export type MessageId = z.infer<typeof MessageId>;
