// How many calls wait for a decision, in all sessions, and the way to each.

import { chatPath } from "../model/route.ts";
import { ago, glance } from "../model/text.ts";
import { Link } from "../router.tsx";
import { useApp } from "./context.ts";

export function ApprovalsMenu() {
  const { directory, now } = useApp();
  const { pending } = directory;
  const count = pending.value.length;
  return (
    <details class="menu" onKeyDown={(event) => event.key === "Escape" && close(event.currentTarget)}>
      <summary class="pill" data-tone={count > 0 ? "warn" : "quiet"}>
        {count > 0 && <span class="dot" aria-hidden="true" />}
        {count} {count === 1 ? "approval" : "approvals"}
      </summary>
      <div class="menu-body">
        {count === 0 && <p class="empty small">Nothing waits for you.</p>}
        <ul>
          {pending.value.map((call) => (
            <li key={`${call.session_id}/${call.function_call_id}`}>
              <Link href={chatPath(call.session_id)} class="menu-row" onClick={(event: MouseEvent) => close(event.currentTarget)}>
                <span class="mono strong">{call.function_id}</span>
                <span class="mono muted">{glance(call.args, 60)}</span>
                <span class="muted">asked {ago(now.value - call.requested_at)}</span>
              </Link>
            </li>
          ))}
        </ul>
      </div>
    </details>
  );
}

function close(inside: EventTarget | null): void {
  const menu = inside instanceof Element ? inside.closest("details") : null;
  if (menu !== null) menu.open = false;
}
