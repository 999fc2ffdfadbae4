// How a queue delivers, as it is configured and as it is kept.

import type { Principal } from "@iii/sdk/protocol";

/** How a queue delivers. `function_id`, `condition` and `metadata` are set for queues that belong to one subscriber. */
export interface QueueSpec {
  readonly name: string;
  /** `held`: the rules cannot be read; its messages wait until a subscriber brings them anew. */
  readonly kind: "named" | "state" | "topic" | "held";
  readonly concurrency: number;
  readonly max_attempts: number;
  readonly backoff_ms: number;
  readonly group_field?: string | undefined;
  readonly fifo: boolean;
  /** For `state` queues: which changes they collect. */
  readonly filter?: { readonly scope?: string | undefined; readonly key?: string | undefined } | undefined;
  /** For `topic` queues. */
  readonly topic?: string | undefined;
  readonly function_id?: string | undefined;
  readonly condition?: string | undefined;
  readonly metadata?: unknown;
  /** Who bound the subscriber. */
  readonly by?: Principal | undefined;
}
