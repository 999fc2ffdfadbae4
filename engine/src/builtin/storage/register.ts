// State, streams and queues around one ledger: one transaction can change all three.
import type { QueueConfig } from "../../config/schema.ts";
import type { Builtin, EngineHost } from "../../ports/host.ts";
import { createLedger } from "./ledger.ts";
import { QueueHub } from "./queue/hub.ts";
import { serveQueues } from "./queue/register.ts";
import { Topics } from "./queue/topics.ts";
import { serveState } from "./state/register.ts";
import { StateTable } from "./state/table.ts";
import type { Publish } from "./state/transact.ts";
import { StateTriggers } from "./state/triggers.ts";
import { StreamHub } from "./stream/hub.ts";
import { serveStream } from "./stream/register.ts";
import { streamTriggers } from "./stream/triggers.ts";

export interface StorageConfig {
  readonly queues: Readonly<Record<string, QueueConfig>>;
  /** How `state::transact` publishes. */
  readonly publish: Publish;
  readonly max_value_bytes?: number;
}

function install(host: EngineHost, config: StorageConfig): ReturnType<Builtin["install"]> {
  const ledger = createLedger(host);
  const hub = new QueueHub(host, ledger, config.queues);
  const topics = new Topics(host, ledger, hub);
  const maxBytes = config.max_value_bytes ?? 16 * 1_048_576;
  const streams = new StreamHub(host, ledger, maxBytes, streamTriggers(host));
  const table = new StateTable(ledger, host.log, maxBytes);
  const triggers = new StateTriggers(host, ledger, hub);
  serveState(host, { ledger, table, triggers, hub, streams, publish: config.publish });
  serveStream(host, { ledger, streams });
  serveQueues(host, { ledger, hub, topics });
  return {
    async start() {
      await ledger.load();
      table.restore();
      streams.restore();
      hub.restore();
      triggers.restore();
      ledger.forget();
    },
    stop: () => hub.stop(),
  };
}

/** The storage built-ins; they share one ledger and are installed together. */
export function storageBuiltins(config: StorageConfig): Builtin[] {
  return [{ name: "storage", install: (host) => install(host, config) }];
}
