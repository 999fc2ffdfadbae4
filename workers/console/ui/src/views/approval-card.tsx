// A call that waits for a person. Shows the whole arguments, takes no focus, and ignores input that was meant for something else.
import type { AwaitingApproval } from "@iii/contracts";
import type { Iii } from "@iii/sdk";
import type * as Gate from "@iii/worker-approval-gate/contract";
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { call as ask } from "../bus.ts";
import { advice, refusal } from "../model/advice.ts";
import type { Counted } from "../model/deadline.ts";
import { locked } from "../model/key.ts";
import { duration, pretty } from "../model/text.ts";
import { path } from "../router.tsx";
import { useApp } from "./context.ts";
import { focusAfter } from "./focus.ts";
import { CopyButton, Plain } from "./plain.tsx";
import { useStill } from "./still.ts";

export type Parked = Counted<AwaitingApproval>;

export function ApprovalCard({ call, session_id }: { call: Parked; session_id: string }) {
  const { now, rights } = useApp();
  const args = pretty(call.args);
  const shut = locked(rights.value, path.value);
  const { card, actions, reason, state, note, decide } = useDecision(call, session_id);
  const busy = state.value !== "open" || shut !== undefined;
  return (
    <section
      ref={card}
      class="approval"
      aria-label={`Approval of ${call.function_id}`}
      data-call={call.function_call_id}
      data-decided={state.value === "decided"}
      tabIndex={-1}
    >
      <header class="approval-head" data-tone="ask">
        <span class="dot" aria-hidden="true" />
        <strong>Needs your approval</strong>
        <span class="mono approval-fn">
          <Plain text={call.function_id} />
        </span>
        <span class="spacer" />
        <Expiry ends_at={call.ends_at} tick={now.value} />
      </header>
      <div class="part-head">
        <h2>Arguments, whole</h2>
        <CopyButton text={args} label="Copy the arguments" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre class="block approval-args" tabIndex={0}>
        <Plain text={args} />
      </pre>
      <p class="approval-why muted">
        {call.rule_id === undefined ? "No rule matched, so a person decides." : `Rule ${call.rule_id} asks a person.`}
        {call.args_sha256 !== undefined && (
          <>
            {" "}
            Arguments <span class="mono">sha256:{call.args_sha256.slice(0, 12)}</span>
          </>
        )}
      </p>
      <div class="approval-actions" ref={actions}>
        <button type="button" class="button primary" disabled={busy} onClick={() => decide("allow")}>
          Allow once
        </button>
        <button type="button" class="button danger" disabled={busy} onClick={() => decide("deny")}>
          Deny
        </button>
        <input
          class="input"
          type="text"
          placeholder="Reason (optional, the model reads it)"
          aria-label="Reason for the decision"
          value={reason.value}
          maxLength={4000}
          disabled={busy}
          onInput={(event) => {
            reason.value = event.currentTarget.value;
          }}
        />
      </div>
      {shut !== undefined && (
        <p class="notice">
          {shut.why} To decide: <code>{shut.command}</code> prints a link that may.
        </p>
      )}
      {note.value !== null && (
        <p class="notice" role="status">
          {note.value}
        </p>
      )}
    </section>
  );
}

function useDecision(call: Parked, session_id: string) {
  const { iii, changed } = useApp();
  const card = useRef<HTMLElement>(null);
  const actions = useRef<HTMLDivElement>(null);
  const reason = useSignal("");
  const state = useSignal<"open" | "sending" | "decided">("open");
  const note = useSignal<string | null>(null);
  const still = useStill(actions);

  async function send(decision: "allow" | "deny"): Promise<void> {
    state.value = "sending";
    const outcome = await resolve(iii, decisionOf(call, session_id, decision, reason.value.trim()));
    state.value = outcome.settled ? "decided" : "open";
    note.value = outcome.note;
    if (outcome.settled) focusAfter(card.current);
    changed();
  }

  const decide = (decision: "allow" | "deny") => {
    if (still() && state.value === "open") void send(decision);
  };
  return { card, actions, reason, state, note, decide };
}

function decisionOf(call: Parked, session_id: string, decision: "allow" | "deny", reason: string) {
  return {
    session_id,
    function_call_id: call.function_call_id,
    decision,
    by: "console",
    ...(reason === "" ? {} : { reason }),
    ...(call.args_sha256 === undefined ? {} : { args_sha256: call.args_sha256 }),
  };
}

/** Sends a decision; says what became of it, and whether the call is settled now, by whomever. Never rejects. */
async function resolve(iii: Iii, decision: ReturnType<typeof decisionOf>): Promise<{ settled: boolean; note: string }> {
  try {
    const answer = await ask<typeof Gate.resolveApproval>(iii, "approval::resolve", decision);
    if (answer.ok) return { settled: true, note: `${decision.decision === "allow" ? "Allowed" : "Denied"}. The turn goes on.` };
    const settled = answer.error === "already_decided" || answer.error === "not_pending";
    return { settled, note: refusal(answer.error, "first" in answer ? answer.first : undefined) };
  } catch (error) {
    const { code, text, next } = advice(error);
    return { settled: false, note: `${code}: ${text} ${next}` };
  }
}

/** Drawn again at each tick; what is left is counted on the clock that never jumps. */
function Expiry({ ends_at }: { ends_at: number | undefined; tick: number }) {
  if (ends_at === undefined) return null;
  const left = ends_at - performance.now();
  return <span class="muted num">{left <= 0 ? "expired" : `expires in ${duration(Math.ceil(left / 1000) * 1000)}`}</span>;
}
