// The connection as a pure machine: what happened to it in, what to do next out. No timers, no sockets.

export type LinkState =
  | { readonly phase: "connecting"; readonly attempt: number }
  | { readonly phase: "open" }
  | { readonly phase: "waiting"; readonly attempt: number }
  | { readonly phase: "closed" };

export type LinkEvent = { type: "opened" } | { type: "lost" } | { type: "due" } | { type: "close" };

export type LinkEffect = { type: "dial" } | { type: "wait"; ms: number } | { type: "hang_up" };

export interface ReconnectOptions {
  readonly initial_ms: number;
  readonly max_ms: number;
  /** Share of the delay by which it is moved up or down by chance. */
  readonly jitter: number;
}

export const RECONNECT: ReconnectOptions = { initial_ms: 1_000, max_ms: 30_000, jitter: 0.3 };

/** The wait before the next try: doubles from `initial_ms` to `max_ms`; `chance` in [0, 1) spreads it. */
export function backoff(attempt: number, chance: number, options: ReconnectOptions): number {
  const base = Math.min(options.max_ms, options.initial_ms * 2 ** Math.min(attempt, 30));
  return Math.round(base * (1 + options.jitter * (2 * chance - 1)));
}

/** One step. A closed link stays closed; an event that does not fit the phase changes nothing. */
export function nextLink(state: LinkState, event: LinkEvent, chance: number, options: ReconnectOptions): readonly [LinkState, LinkEffect?] {
  if (state.phase === "closed") return [state];
  if (event.type === "close") return [{ phase: "closed" }, { type: "hang_up" }];
  if (event.type === "opened") return state.phase === "connecting" ? [{ phase: "open" }] : [state];
  if (event.type === "due")
    return state.phase === "waiting" ? [{ phase: "connecting", attempt: state.attempt }, { type: "dial" }] : [state];
  if (state.phase === "waiting") return [state];
  const tried = state.phase === "open" ? 0 : state.attempt;
  return [
    { phase: "waiting", attempt: tried + 1 },
    { type: "wait", ms: backoff(tried, chance, options) },
  ];
}
