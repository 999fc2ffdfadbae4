// The transcript: settled messages, then what streams. Follows the end until the reader scrolls away.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { isOver } from "../model/calls.ts";
import type { Entry, View } from "../model/transcript.ts";
import type { SessionStore } from "../session-store.ts";
import { useApp } from "./context.ts";
import { LiveView, MessageView } from "./message.tsx";
import { LooseApprovals } from "./tool-card.tsx";
import { Welcome } from "./welcome.tsx";

const NEAR_PX = 24;

/** A message that waits in line stands below what the running turn still says. */
const isQueued = (entry: Entry) => entry.posted === "queued";
const hasStarted = (entry: Entry) => !isQueued(entry);

export function Transcript({ store }: { store: SessionStore }) {
  const view = store.view.value;
  const { directory, link } = useApp();
  const { box, stuck, byHand, onRegion } = useFollow(view, directory.pending.value);
  const empty = store.loaded.value && view.entries.length === 0 && view.live.length === 0;
  const working =
    link.value === "live" && !isOver(view.turn) && view.live.length === 0 && view.turn?.state !== "function_awaiting_approval";
  return (
    <div class="transcript-wrap">
      <div
        ref={box}
        class="transcript"
        role="log"
        aria-live="off"
        aria-label="Transcript"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        tabIndex={0}
        onWheel={byHand}
        onTouchMove={byHand}
        onKeyUp={onRegion}
        onPointerUp={onRegion}
      >
        {!store.loaded.value && view.entries.length === 0 && <p class="empty">Opening the session…</p>}
        {empty && <Welcome store={store} />}
        {view.entries.filter(hasStarted).map((entry) => (
          <MessageView key={entry.key} entry={entry} view={view} store={store} />
        ))}
        {view.live.map((live) => (
          <LiveView key={live.message_id} live={live} known={link.value === "live"} />
        ))}
        <LooseApprovals view={view} store={store} />
        {working && (
          <p class="working muted">
            <span class="spinner" aria-hidden="true" /> working
          </p>
        )}
        {view.entries.filter(isQueued).map((entry) => (
          <MessageView key={entry.key} entry={entry} view={view} store={store} />
        ))}
      </div>
      {!stuck.value && (
        <button
          type="button"
          class="button small jump"
          onClick={() => {
            stuck.value = true;
          }}
        >
          Latest ↓
        </button>
      )}
    </div>
  );
}

/** Follows the end of the transcript until the reader scrolls away from it. */
function useFollow(view: View, pending: readonly unknown[]) {
  const box = useRef<HTMLDivElement>(null);
  const stuck = useSignal(true);

  // Whoever posts wants to see what comes of it.
  const posting = view.entries.some((entry) => entry.posted === "sending");
  useLayoutEffect(() => {
    if (posting) stuck.value = true;
  }, [posting, stuck]);
  useLayoutEffect(() => {
    if (stuck.value && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [view, pending, stuck.value]);

  // Only a person's own scrolling changes whether the end is followed.
  const byHand = () => {
    requestAnimationFrame(() => {
      const node = box.current;
      if (node !== null) stuck.value = node.scrollHeight - node.scrollTop - node.clientHeight < NEAR_PX;
    });
  };
  /** The scroll bar and the scrolling keys act on the region itself; what happens inside of it is not scrolling. */
  const onRegion = (event: Event) => {
    if (event.target === box.current) byHand();
  };
  return { box, stuck, byHand, onRegion };
}
