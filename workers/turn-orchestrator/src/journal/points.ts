// The named places around a step's commit where a process can be made to die. Names only.
import type { Out } from "../machine/draft.ts";

export interface Moment {
  readonly starts: boolean;
  readonly ends: boolean;
  readonly outs: readonly Out[];
}

export function before({ starts, ends, outs }: Moment): string[] {
  const parks = outs.some((out) => out.type === "park");
  return [
    ...(starts ? ["effect.started.before_commit"] : []),
    ...(parks ? ["park.before_commit"] : []),
    ...(ends ? ["finish.after_events_before_commit"] : []),
    "turn.commit.before",
  ];
}

export function after({ ends, outs }: Moment): string[] {
  const parks = outs.some((out) => out.type === "park");
  return [...(parks ? ["park.after_commit"] : []), ...(ends ? [] : ["effect.recorded_before_next"])];
}
