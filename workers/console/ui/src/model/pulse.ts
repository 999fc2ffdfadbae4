// Whether the other end of a socket is still there. A socket can die without a word: no close, no error. Pure: time comes in.

/** Nothing came for this long: ask. The engine's own pings do not reach a page's script. */
export const QUIET_MS = 10_000;
/** Asked, and nothing came for this long: the socket is dead. */
export const ANSWER_MS = 5_000;
/** Dialled, and not open after this long: the same. */
export const OPEN_MS = 8_000;

/** Times in ms of a clock that never jumps. */
export interface Pulse {
  readonly dialled_at: number;
  readonly opened: boolean;
  readonly heard_at: number;
  readonly asked_at: number | undefined;
}

export function dialled(now: number): Pulse {
  return { dialled_at: now, opened: false, heard_at: now, asked_at: undefined };
}

/** Anything that arrives is a sign of life. */
export function heard(pulse: Pulse, now: number): Pulse {
  return { ...pulse, opened: true, heard_at: now, asked_at: undefined };
}

/** What to do now; `doubt`: there is a reason to ask at once, such as a page that was asleep. */
export function nextPulse(pulse: Pulse, now: number, doubt: boolean): "wait" | "ask" | "drop" {
  if (!pulse.opened) return now - pulse.dialled_at >= OPEN_MS ? "drop" : "wait";
  if (pulse.asked_at !== undefined) return now - pulse.asked_at >= ANSWER_MS ? "drop" : "wait";
  return doubt || now - pulse.heard_at >= QUIET_MS ? "ask" : "wait";
}
