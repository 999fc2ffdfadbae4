// What an empty session shows: which model runs, and what that model offers to try, one click each.
import { pick } from "../model/offer.ts";
import type { SessionStore } from "../session-store.ts";
import { draft, modelKey } from "./composer-state.ts";
import { useApp } from "./context.ts";

export function Welcome({ store }: { store: SessionStore }) {
  const { models, preferred } = useApp().directory;
  const model = pick(models.value, modelKey.value, preferred.value);
  const others = models.value.filter((one) => one.why !== undefined);
  return (
    <div class="welcome">
      <h2>What should it do?</h2>
      <p class="muted">{model === undefined ? "The default model runs." : `Model: ${model.display_name} · ${model.provider}`}</p>
      {model?.examples !== undefined && (
        <ul class="welcome-list">
          {model.examples.map(({ title, text }) => (
            <li key={text}>
              <button
                type="button"
                class="welcome-row"
                onClick={() => {
                  draft(store.session_id).value = text;
                  document.getElementById("message")?.focus();
                }}
              >
                <span>{title}</span>
                <code>{text}</code>
              </button>
            </li>
          ))}
        </ul>
      )}
      {others.length > 0 && (
        <details class="welcome-others">
          <summary>{others.length} more models need something first</summary>
          <ul>
            {[...new Set(others.map((one) => one.way ?? `${one.model.provider}: ${one.why}`))].map((way) => (
              <li key={way}>{way}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
