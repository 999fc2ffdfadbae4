// A function call: what is asked for, where it stands, what came back. A parked one carries its approval card.
import type { FunctionCallBlock } from "@iii/contracts";
import { useRef } from "preact/hooks";
import { type CallState, type CallStatus, denial, denialText, target } from "../model/calls.ts";
import { duration, glance, pretty } from "../model/text.ts";
import type { View } from "../model/transcript.ts";
import type { SessionStore } from "../session-store.ts";
import { ApprovalCard, type Parked } from "./approval-card.tsx";
import { useApp } from "./context.ts";
import { Down } from "./down.tsx";
import { CopyButton, Plain } from "./plain.tsx";

const WORDS: Readonly<Record<CallStatus, string>> = {
  waiting: "waiting",
  running: "running",
  awaiting: "needs approval",
  done: "done",
  error: "error",
  lost: "no result",
};

const REFUSED: Readonly<Record<string, string>> = {
  permissions: "denied by a rule",
  user: "denied by a person",
  gate_unavailable: "refused: no gate",
  expired: "expired, so denied",
};

function refusedBy(by: string): string {
  return REFUSED[by] ?? `denied by ${by}`;
}

export function ToolCard({ block, view, store }: { block: FunctionCallBlock; view: View; store: SessionStore }) {
  const call = view.calls.get(block.id) ?? { status: "waiting" as const };
  const asked = target(block);
  const waiting = useParked(view, store);
  const parked = waiting.find((one) => one.function_call_id === block.id);
  const open = parked !== undefined && call.status !== "done" && call.status !== "error";
  const { slot, height } = useHeight(open);
  // What is below must not slide under the pointer while other cards still wait for a click.
  const kept = !open && waiting.length > 0 ? height : undefined;
  return (
    <div ref={slot} style={kept === undefined ? {} : { minHeight: `${kept}px` }}>
      {open ? (
        <ApprovalCard call={parked} session_id={store.session_id} />
      ) : (
        <CallView id={asked.function_id} args={asked.args} call={call} />
      )}
    </div>
  );
}

/** The height that a card had when it was drawn last. */
function useHeight(open: boolean) {
  const slot = useRef<HTMLDivElement>(null);
  const seen = useRef<{ open: boolean; height: number | undefined }>({ open: false, height: undefined });
  // Before the change is drawn the old card still stands there.
  if (seen.current.open) seen.current.height = slot.current?.offsetHeight;
  seen.current.open = open;
  return { slot, height: seen.current.height };
}

/** Approval cards whose call is not in the transcript yet. */
export function LooseApprovals({ view, store }: { view: View; store: SessionStore }) {
  const loose = useParked(view, store).filter((call) => !view.asked.has(call.function_call_id));
  return (
    <>
      {loose.map((call) => (
        <ApprovalCard key={call.function_call_id} call={call} session_id={store.session_id} />
      ))}
    </>
  );
}

/** What this session waits on: the turn says it, and the gate's own list adds what the turn's view leaves out. */
function useParked(view: View, store: SessionStore): readonly Parked[] {
  const { pending } = useApp().directory;
  const calls = new Map<string, Parked>();
  for (const call of view.turn?.awaiting_approval ?? []) calls.set(call.function_call_id, call);
  for (const call of pending.value) {
    const over = view.calls.get(call.function_call_id)?.text !== undefined;
    if (call.session_id === store.session_id && !over) calls.set(call.function_call_id, { ...calls.get(call.function_call_id), ...call });
  }
  return [...calls.values()];
}

function CallView({ id, args, call }: { id: string; args: unknown; call: CallState }) {
  const denied = denial(call.details);
  return (
    <details class="tool" data-status={denied === undefined ? call.status : "denied"} open={call.status === "error"}>
      <summary class="tool-line">
        <span class="dot" aria-hidden="true" />
        <span class="tool-name mono">
          <Plain text={id} />
        </span>
        <span class="tool-args mono muted">
          <Plain text={glance(args)} />
        </span>
        <span class="tool-status">{denied === undefined ? WORDS[call.status] : refusedBy(denied.by)}</span>
        {call.duration_ms !== undefined && call.duration_ms > 0 && <span class="muted num">{duration(call.duration_ms)}</span>}
      </summary>
      <div class="tool-body">
        <Part title="Request" text={pretty(args)} />
        {denied !== undefined && <Denial by={denied.by} reason={denied.reason} />}
        {call.text !== undefined && denied === undefined && <Part title="Result" text={indented(call.text)} />}
        {call.text === undefined && <p class="muted">No result yet.</p>}
      </div>
    </details>
  );
}

function Denial({ by, reason }: { by: string; reason: string }) {
  const down = useApp().directory.down.value;
  const text = by === "user" ? denialText(reason) : reason === "" ? "" : `Reason: ${reason}`;
  return (
    <>
      {text !== "" && (
        <p class="stop-note">
          <Plain text={text} />
        </p>
      )}
      {by === "gate_unavailable" && down.map((worker) => <Down key={worker.name} {...worker} />)}
    </>
  );
}

/** A result that is JSON reads better indented; anything else stays as it is. */
function indented(text: string): string {
  if (!/^\s*[{[]/.test(text) || text.length > 50_000) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Part({ title, text }: { title: string; text: string }) {
  return (
    <div class="part">
      <header class="part-head">
        <h2>{title}</h2>
        <CopyButton text={text} label={`Copy the ${title.toLowerCase()}`} />
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre class="block" tabIndex={0}>
        <Plain text={text} />
      </pre>
    </div>
  );
}
