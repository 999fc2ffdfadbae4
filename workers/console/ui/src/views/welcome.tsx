// What an empty session shows: the words that the demo model obeys, one click each.
import type { SessionStore } from "../session-store.ts";
import { chosen, draft } from "./composer-state.ts";
import { useApp } from "./context.ts";

const WORDS = [
  ["Stream an answer", "say hello from the bus"],
  ["Ask for approval", 'call shell::fs::ls {"path":"."}'],
  ["Stream slowly", "slow 4000 every word of this answer takes its time to arrive"],
  ["Fail on purpose", "fail rate_limited"],
] as const;

export function Welcome({ store }: { store: SessionStore }) {
  const { models } = useApp();
  const { provider, model } = chosen(models.value);
  return (
    <div class="welcome">
      <h1>Post a turn</h1>
      <p class="muted">
        It runs on{" "}
        <span class="mono">
          {provider}/{model}
        </span>
        . The demo model needs no key and obeys these words:
      </p>
      <ul class="welcome-list">
        {WORDS.map(([title, words]) => (
          <li key={words}>
            <button
              type="button"
              class="welcome-row"
              onClick={() => {
                draft(store.session_id).value = words;
                document.getElementById("message")?.focus();
              }}
            >
              <span>{title}</span>
              <code>{words}</code>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
