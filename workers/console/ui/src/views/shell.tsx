// The frame: top bar, session rail, and the route's view.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { freshSession } from "../fresh.ts";
import { chatPath, routeOf, sessionOf } from "../model/route.ts";
import { path, Redirect } from "../router.tsx";
import { ApprovalsMenu } from "./approvals-menu.tsx";
import { Chat } from "./chat.tsx";
import { useApp } from "./context.ts";
import { LinkPill } from "./link-pill.tsx";
import { Notices } from "./notices.tsx";
import { Nowhere } from "./nowhere.tsx";
import { Sidebar } from "./sidebar.tsx";
import { ThemeButton } from "./theme-button.tsx";

export function Shell() {
  const rail = useSignal(false);
  const { link } = useApp();
  useEffect(() => {
    rail.value = false;
  }, [path.value]);
  return (
    <div class="shell" data-rail={rail.value ? "open" : "closed"} data-link={link.value}>
      <a class="skip" href="#main">
        Skip to the content
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
      <main class="main" id="main" tabIndex={-1}>
        <Notices />
        <Page path={path.value} />
      </main>
    </div>
  );
}

function Page({ path: at }: { path: string }) {
  const route = routeOf(at);
  if (route.view === "chat") return <Chat key={route.part} sid={sessionOf(route.part)} tab={route.tab} trace={route.trace} />;
  if (route.view === "home") return <Home />;
  if (route.view === "fresh") return <Fresh />;
  return <Nowhere what={`There is no page at ${at}.`} />;
}

/** `/` is the last session, or a new one when there is none. */
function Home() {
  const { link, directory } = useApp();
  const { sessions, sessionsProblem } = directory;
  const newest = sessions.value?.[0];
  if (newest !== undefined) return <Redirect to={chatPath(newest.session_id)} />;
  if (sessions.value !== null || sessionsProblem.value !== null) return <Fresh />;
  return link.value === "gone" ? null : <p class="empty">Connecting to the engine…</p>;
}

function Fresh() {
  const id = useMemo(freshSession, []);
  return <Redirect to={chatPath(id)} />;
}
