// Says whether what is on the page is live.
import { ago } from "../model/text.ts";
import { useApp } from "./context.ts";

const WORDS = { connecting: "connecting", live: "live", reconnecting: "reconnecting", stale: "stale", gone: "engine gone" } as const;

export function LinkPill() {
  const { link, since, now } = useApp();
  const state = link.value;
  const when = state === "live" ? "" : ` since ${new Date(since.value).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`;
  return (
    <span class="pill" data-tone={state === "live" ? "ok" : "warn"} role="status" title={`${state} for ${ago(now.value - since.value)}`}>
      <span class="dot" aria-hidden="true" />
      {WORDS[state]}
      {when}
    </span>
  );
}
