// The session rail: newest first, what waits for a decision marked.

import { isAbsent } from "../model/advice.ts";
import { chatPath } from "../model/route.ts";
import { ago, headline } from "../model/text.ts";
import { Link, path } from "../router.tsx";
import { useApp } from "./context.ts";

export function Sidebar() {
  const { directory, now } = useApp();
  const { sessions, sessionsProblem, pending } = directory;
  const waiting = new Map<string, number>();
  for (const call of pending.value) waiting.set(call.session_id, (waiting.get(call.session_id) ?? 0) + 1);
  const rows = sessions.value ?? [];
  const problem = sessionsProblem.value;
  return (
    <nav class="rail" aria-label="Sessions">
      <div class="rail-head">
        <h2>Sessions</h2>
        <Link href="/new" class="button small">
          New
        </Link>
      </div>
      {problem !== null &&
        (isAbsent(problem) ? (
          <p class="empty small">The session worker is not running, so there is no list.</p>
        ) : (
          <p class="notice" data-tone="warn">
            <b>{problem.code}</b> {problem.text} {problem.next}
          </p>
        ))}
      {rows.length === 0 && sessions.value !== null && <p class="empty small">No sessions yet. Send a message to start one.</p>}
      <ul class="rail-list">
        {rows.map((row) => {
          const href = chatPath(row.session_id);
          const here = path.value === href || path.value.startsWith(`${href}/`);
          const count = waiting.get(row.session_id) ?? 0;
          return (
            <li key={row.session_id}>
              <Link href={href} class="rail-row" aria-current={here ? "page" : undefined}>
                <span class="rail-title">{headline(row.display_name ?? row.last_message_summary ?? "") || "Untitled"}</span>
                <span class="rail-meta">
                  <span class="mono">{row.session_id.slice(0, 10)}</span>
                  {count > 0 && <span class="badge">{count} waiting</span>}
                  <time dateTime={new Date(row.updated_at).toISOString()} title={new Date(row.updated_at).toLocaleString()}>
                    {ago(now.value - row.updated_at)}
                  </time>
                </span>
              </Link>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}
