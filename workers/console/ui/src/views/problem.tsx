// A problem with its code, its text and the next step. Never only a toast.
import type { Advice } from "../model/advice.ts";

export function Problem({ advice, retry, dismiss }: { advice: Advice; retry?: () => void; dismiss?: () => void }) {
  return (
    <div class="problem" role="alert">
      <span class="mono strong">{advice.code}</span>
      <span class="problem-text">{advice.text}</span>
      <span class="muted">{advice.next}</span>
      {retry !== undefined && (
        <button type="button" class="button small" onClick={retry}>
          Try again
        </button>
      )}
      {dismiss !== undefined && (
        <button type="button" class="icon-button" aria-label="Dismiss" onClick={dismiss}>
          ×
        </button>
      )}
    </div>
  );
}
