// What went wrong in a person's words, and what to do next, by error code. Pure.

export interface Advice {
  readonly code: string;
  readonly text: string;
  readonly next: string;
}

const NEXT: Readonly<Record<string, string>> = {
  function_not_found: "Start the worker that serves it: iii worker list shows who is down.",
  invocation_stopped: "The worker went away in mid-call. Send again; nothing accepted before is lost.",
  disconnected: "The engine's connection broke. The page reconnects by itself; send again when the pill says live.",
  TIMEOUT: "No answer in time. Look at the trace, or send again.",
  FORBIDDEN: "This page has no key that allows it. iii open prints a link with one.",
  invalid_payload: "Correct the field that is named and send again.",
  id_invalid: "Ids are 1 to 128 printable ASCII characters without spaces and without '/'.",
  provider_unknown: "Choose another model, or enable the provider's worker in config.yaml.",
  model_unknown: "Choose a model from the list.",
  credential_missing: "Set the provider's key in the environment and start again, or choose another model.",
  session_busy: "Wait for the running turn, or stop it.",
  gate_unavailable: "Start the policy worker: without it every call is refused.",
  store_unavailable: "The disk refused a write. Check space and permissions of the data folder.",
  STORE_FULL: "The disk is full. Make space on the data folder's disk and send again; nothing needs a restart.",
  payload_too_large: "Send less at once.",
};

/** Turns anything thrown by a call into a code, a text and a next step. */
export function advice(thrown: unknown): Advice {
  const error = thrown as { code?: unknown; message?: unknown } | null;
  const code = typeof error?.code === "string" ? error.code : "unexpected";
  const text = typeof error?.message === "string" ? error.message : String(thrown);
  return { code, text, next: NEXT[code] ?? "Try again; the trace of the turn shows where it stopped." };
}

const OUTCOME: Readonly<Record<string, string>> = {
  already_decided: "Somebody decided this call before you.",
  not_pending: "This call no longer waits: it was decided, expired or aborted.",
  args_changed: "The arguments are not the ones that were shown. The call was not allowed.",
  invalid_payload: "The decision was not understood.",
  resume_failed: "The decision could not be stored. Try again.",
};

/** What a refused decision means, with the first decision when there is one. */
export function refusal(error: string, first?: { decision?: string | undefined; by?: string | undefined }): string {
  const text = OUTCOME[error] ?? `The decision was refused: ${error}.`;
  return first?.decision === undefined ? text : `${text} It was: ${first.decision}${first.by === undefined ? "" : ` by ${first.by}`}.`;
}

/** Whether nobody serves the function that was called: its layer is not part of this stack, or is down. */
export function isAbsent(thrown: unknown): boolean {
  return advice(thrown).code === "function_not_found";
}

const AFTER: Readonly<Record<string, string>> = {
  auth_expired: "Set the key and send again, or choose another model.",
  rate_limited: "Wait a moment and send again, or choose another model.",
  context_overflow: "Start a new session, or choose a model with a longer context.",
  transient: "Send again.",
};

/** Why an answer failed, in a person's words, and what to do next. */
export function failure(answer: {
  readonly provider: string;
  readonly error_kind?: string | null | undefined;
  readonly error_message?: string | null | undefined;
}): Advice {
  const code = answer.error_kind ?? "error";
  const text = answer.error_message ?? "The model's answer ended with an error.";
  const missing = /^credential_missing: (?:no credential for \S+; )?(.*)$/s.exec(text)?.[1];
  const next = AFTER[code] ?? "";
  return missing === undefined ? { code, text, next } : { code: "no key", text: `No key for ${answer.provider}: ${missing}.`, next };
}
