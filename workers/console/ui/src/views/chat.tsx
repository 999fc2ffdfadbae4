// One session: its head, its transcript or its trace, and the composer.

import { useEffect } from "preact/hooks";
import type { Directory } from "../directory.ts";
import { isFresh } from "../fresh.ts";
import { chatPath } from "../model/route.ts";
import { dollars, headline } from "../model/text.ts";
import type { View } from "../model/transcript.ts";
import { announcement, turnWords } from "../model/turn-words.ts";
import { Link } from "../router.tsx";
import type { SessionStore } from "../session-store.ts";
import { Composer } from "./composer.tsx";
import { useApp } from "./context.ts";
import { Nowhere } from "./nowhere.tsx";
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
  const { directory } = useApp();
  const view = store.view.value;
  const base = chatPath(store.session_id);
  if (isUnknown(store, directory.sessions.value)) return <Nowhere what={`There is no session '${store.session_id}'.`} />;
  return (
    <section class="chat" aria-label="Session">
      <h1 class="visually-hidden">{titleOf(store, directory.sessions.value)}</h1>
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
        {announcement(view.turn)}
      </p>
    </section>
  );
}

type Rows = Directory["sessions"]["value"];

/** Nothing was ever written to it, and it is not one that this page has just made. Without a list of sessions nobody can tell. */
function isUnknown(store: SessionStore, sessions: Rows): boolean {
  const view = store.view.value;
  if (!store.loaded.value || sessions === null || view.turn !== null || view.entries.length > 0 || isFresh(store.session_id)) return false;
  return !sessions.some((row) => row.session_id === store.session_id);
}

function titleOf(store: SessionStore, sessions: Rows): string {
  const row = sessions?.find((one) => one.session_id === store.session_id);
  return headline(row?.display_name ?? row?.last_message_summary ?? "") || "New session";
}

function TurnChip({ view }: { view: View }) {
  const { link } = useApp();
  const turn = view.turn;
  if (turn === null) return null;
  const { text, tone } = turnWords(turn, link.value === "live");
  return (
    <span class="chip turn-state" data-tone={tone} data-state={turn.state} title={`turn ${turn.turn_id}`}>
      <span class="dot" aria-hidden="true" />
      {text}
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
