// What every part of the orchestrator is given.
import type { Clock, Iii, Logger } from "@iii/sdk";
import type { Config } from "./config.ts";
import type { TurnStore } from "./journal/store.ts";
import type { Transcript } from "./journal/transcript.ts";

export interface Deps {
  readonly iii: Iii;
  readonly clock: Clock;
  readonly log: Logger;
  readonly config: Config;
  readonly store: TurnStore;
  readonly transcripts: { readonly tree: Transcript; readonly own: Transcript };
  /** When this process began to serve, by the monotonic clock. */
  readonly started_at: number;
  /** Marks a place where a test may let the process die. A process that dies there does not come back from it. */
  point(name: string): void | Promise<void>;
}
