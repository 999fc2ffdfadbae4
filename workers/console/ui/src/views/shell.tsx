// The frame: top bar, session rail, and the route's view.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Redirect, Route, Switch, useLocation } from "wouter-preact";
import { newId } from "../bus.ts";
import { chatPath, sessionOf } from "../model/route.ts";
import { ApprovalsMenu } from "./approvals-menu.tsx";
import { Chat } from "./chat.tsx";
import { useApp } from "./context.ts";
import { LinkPill } from "./link-pill.tsx";
import { Sidebar } from "./sidebar.tsx";
import { ThemeButton } from "./theme-button.tsx";

export function Shell() {
  const rail = useSignal(false);
  const { link } = useApp();
  const [path] = useLocation();
  useEffect(() => {
    rail.value = false;
  }, [path]);
  return (
    <div class="shell" data-rail={rail.value ? "open" : "closed"} data-link={link.value}>
      <a class="skip" href="#message">
        Skip to the message box
      </a>
      <header class="topbar">
        <button
          type="button"
          class="icon-button rail-toggle"
          aria-label="Sessions"
          aria-expanded={rail.value}
          onClick={() => {
            rail.value = !rail.value;
          }}
        >
          ☰
        </button>
        <span class="brand">
          <span class="brand-mark" aria-hidden="true" />
          iii <span class="muted">console</span>
        </span>
        <span class="spacer" />
        <ApprovalsMenu />
        <LinkPill />
        <ThemeButton />
      </header>
      <Sidebar />
      <main class="main">
        <Switch>
          <Route path="/chat/:sid/trace/:tid?">{({ sid, tid }) => <Chat key={sid} sid={sessionOf(sid)} tab="trace" trace={tid} />}</Route>
          <Route path="/chat/:sid">{({ sid }) => <Chat key={sid} sid={sessionOf(sid)} tab="chat" trace={undefined} />}</Route>
          <Route path="/new">
            <Fresh />
          </Route>
          <Route>
            <Home />
          </Route>
        </Switch>
      </main>
    </div>
  );
}

/** `/` is the last session, or a new one when there is none. */
function Home() {
  const { sessions, sessionsProblem } = useApp();
  const newest = sessions.value?.[0];
  if (newest !== undefined) return <Redirect to={chatPath(newest.session_id)} replace />;
  if (sessions.value !== null || sessionsProblem.value !== null) return <Fresh />;
  return <p class="empty">Connecting to the engine…</p>;
}

function Fresh() {
  return <Redirect to={chatPath(newId())} replace />;
}
