// A call that waits for a person. Shows the whole arguments, takes no focus, and ignores input that was meant for something else.
import type { AwaitingApproval } from "@iii/contracts";
import type { Iii } from "@iii/sdk";
import type * as Gate from "@iii/worker-approval-gate/contract";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call as ask } from "../bus.ts";
import { advice, refusal } from "../model/advice.ts";
import { duration, pretty } from "../model/text.ts";
import { useApp } from "./context.ts";
import { CopyButton, Plain } from "./plain.tsx";

/** Clicks this soon after the card or the window appeared were aimed at what stood there before. */
const DEAF_MS = 400;

export function ApprovalCard({ call, session_id }: { call: AwaitingApproval; session_id: string }) {
  const { now, pending } = useApp();
  const { reason, state, note, decide } = useDecision(call, session_id);
  const args = pretty(call.args);
  const sha = call.args_sha256 ?? pending.value.find((row) => row.function_call_id === call.function_call_id)?.args_sha256;
  const busy = state.value !== "open";
  return (
    <section class="approval" aria-label={`Approval of ${call.function_id}`} data-call={call.function_call_id} tabIndex={-1}>
      <header class="approval-head" data-tone="ask">
        <span class="dot" aria-hidden="true" />
        <strong>Needs your approval</strong>
        <span class="mono approval-fn">
          <Plain text={call.function_id} />
        </span>
        <span class="spacer" />
        <Expiry at={call.expires_at} now={now.value} />
      </header>
      <div class="part-head">
        <h4>Arguments, whole</h4>
        <CopyButton text={args} label="Copy the arguments" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre class="block approval-args" tabIndex={0}>
        <Plain text={args} />
      </pre>
      <p class="approval-why muted">
        {call.rule_id === undefined ? "No rule matched, so a person decides." : `Rule ${call.rule_id} asks a person.`}
        {sha !== undefined && (
          <>
            {" "}
            Arguments <span class="mono">sha256:{sha.slice(0, 12)}</span>
          </>
        )}
      </p>
      <div class="approval-actions">
        <button type="button" class="button primary" disabled={busy} onClick={() => decide("allow", sha)}>
          Allow once
        </button>
        <button type="button" class="button danger" disabled={busy} onClick={() => decide("deny", sha)}>
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
      {note.value !== null && (
        <p class="notice" role="status">
          {note.value}
        </p>
      )}
    </section>
  );
}

function useDecision(call: AwaitingApproval, session_id: string) {
  const { iii, changed } = useApp();
  const reason = useSignal("");
  const state = useSignal<"open" | "sending" | "decided">("open");
  const note = useSignal<string | null>(null);
  const since = useRef(performance.now());
  useEffect(() => {
    const back = () => {
      since.current = performance.now();
    };
    window.addEventListener("focus", back);
    return () => window.removeEventListener("focus", back);
  }, []);

  async function send(decision: "allow" | "deny", sha: string | undefined): Promise<void> {
    state.value = "sending";
    const outcome = await resolve(iii, decisionOf(call, session_id, decision, reason.value.trim(), sha));
    state.value = outcome.settled ? "decided" : "open";
    note.value = outcome.note;
    changed();
  }

  const decide = (decision: "allow" | "deny", sha: string | undefined) => {
    if (performance.now() - since.current < DEAF_MS || state.value !== "open") return;
    void send(decision, sha);
  };
  return { reason, state, note, decide };
}

function decisionOf(call: AwaitingApproval, session_id: string, decision: "allow" | "deny", reason: string, sha: string | undefined) {
  return {
    session_id,
    function_call_id: call.function_call_id,
    decision,
    by: "console",
    ...(reason === "" ? {} : { reason }),
    ...(sha === undefined ? {} : { args_sha256: sha }),
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

function Expiry({ at, now }: { at: number | null | undefined; now: number }) {
  if (at === null || at === undefined) return null;
  const left = at - now;
  return <span class="muted num">{left <= 0 ? "expired" : `expires in ${duration(Math.ceil(left / 1000) * 1000)}`}</span>;
}
