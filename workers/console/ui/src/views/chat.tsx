// One session: its head, its transcript or its trace, and the composer.

import { useEffect } from "preact/hooks";
import { Link } from "wouter-preact";
import { isOver } from "../model/calls.ts";
import { chatPath } from "../model/route.ts";
import { dollars } from "../model/text.ts";
import type { View } from "../model/transcript.ts";
import type { SessionStore } from "../session-store.ts";
import { Composer } from "./composer.tsx";
import { useApp } from "./context.ts";
import { Problem } from "./problem.tsx";
import { TraceTab } from "./trace-tab.tsx";
import { Transcript } from "./transcript.tsx";

export function Chat(props: { sid: string; tab: "chat" | "trace"; trace: string | undefined }) {
  const app = useApp();
  useEffect(() => {
    app.show(props.sid);
  }, [app, props.sid]);
  const store = app.open.value;
  if (store === null || store.session_id !== props.sid) return <p class="empty">Opening the session…</p>;
  return <Open store={store} tab={props.tab} trace={props.trace} />;
}

function Open({ store, tab, trace }: { store: SessionStore; tab: "chat" | "trace"; trace: string | undefined }) {
  const view = store.view.value;
  const base = chatPath(store.session_id);
  return (
    <section class="chat" aria-label="Session">
      <header class="chat-head">
        <span class="mono chat-id" title={store.session_id}>
          {store.session_id}
        </span>
        <TurnChip view={view} />
        <Meters view={view} />
        <span class="spacer" />
        <nav class="tabs" aria-label="Views of this session">
          <Link href={base} class="tab" aria-current={tab === "chat" ? "page" : undefined}>
            Chat
          </Link>
          <Link href={`${base}/trace`} class="tab" aria-current={tab === "trace" ? "page" : undefined}>
            Trace
          </Link>
        </nav>
      </header>
      {store.problem.value !== null && <Problem advice={store.problem.value} retry={() => void store.load()} />}
      {tab === "trace" ? (
        <TraceTab store={store} trace={trace} />
      ) : (
        <>
          <Transcript store={store} />
          <Composer store={store} />
        </>
      )}
      <p class="visually-hidden" role="status" aria-live="polite">
        {announcement(view)}
      </p>
    </section>
  );
}

const STATE_WORDS = {
  provisioning: "starting",
  assistant_streaming: "model is answering",
  function_execute: "running a function",
  function_awaiting_approval: "waits for your decision",
  steering_check: "deciding what is next",
  stopped: "stopped",
  failed: "failed",
} as const;

function TurnChip({ view }: { view: View }) {
  const turn = view.turn;
  if (turn === null) return <span class="chip">no turn yet</span>;
  const tone = turn.state === "failed" ? "bad" : turn.state === "function_awaiting_approval" ? "warn" : isOver(turn) ? "quiet" : "busy";
  return (
    <span class="chip turn-state" data-tone={tone} data-state={turn.state} title={`turn ${turn.turn_id}`}>
      <span class="dot" aria-hidden="true" />
      {STATE_WORDS[turn.state]}
      {turn.stop_reason !== undefined && turn.state === "stopped" && ` · ${turn.stop_reason}`}
    </span>
  );
}

function Meters({ view }: { view: View }) {
  let tokens = 0;
  let cost = 0;
  for (const { message } of view.entries) {
    if (message.role !== "assistant") continue;
    const usage = message.usage;
    tokens += (usage?.input ?? 0) + (usage?.output ?? 0) + (usage?.cache_read ?? 0) + (usage?.cache_write ?? 0);
    cost += usage?.cost_usd ?? 0;
  }
  return (
    <span class="meters muted">
      {tokens.toLocaleString("en")} tokens · {dollars(cost)}
    </span>
  );
}

function announcement(view: View): string {
  const turn = view.turn;
  if (turn === null) return "";
  if (turn.state === "function_awaiting_approval")
    return `A call waits for your decision: ${turn.awaiting_approval?.[0]?.function_id ?? ""}`;
  if (turn.state === "failed") return `The turn failed: ${turn.error?.message ?? ""}`;
  return turn.state === "stopped" ? "The turn is done." : "A turn is running.";
}
