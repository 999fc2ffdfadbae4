// The shape of config.yaml: one schema, from which types and defaults derive. Reading the file is `load.ts`.
import { z } from "zod";

const Port = z.int().min(0).max(65_535);
const LOOPBACK = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1)$/;
const Host = z.string().regex(/^[A-Za-z0-9.:-]+$/, "must be an address or a host name");

/** How one named queue delivers. `fifo` keeps order per `message_group_field` value. */
export const QueueConfig = z.strictObject({
  type: z.enum(["fifo", "standard"]).default("standard"),
  message_group_field: z.string().min(1).optional(),
  concurrency: z.int().min(1).max(10_000).default(10),
  max_retries: z.int().min(0).max(1_000).default(3),
  backoff_ms: z.int().min(0).max(3_600_000).default(1_000),
});
export type QueueConfig = z.infer<typeof QueueConfig>;

const TURN_STEP: QueueConfig = {
  type: "fifo",
  message_group_field: "session_id",
  concurrency: 64,
  max_retries: 10,
  backoff_ms: 200,
};

const Patterns = z.array(z.string().regex(/^[^!]/, "adds rows; nothing takes rows away")).default([]);
const Owned = z.array(z.strictObject({ name: z.string().min(1), owner: z.array(z.string().min(1)).min(1) })).default([]);

/** Rows that a project adds to the table of who may do what (`ACCESS` in the engine's contract). */
export const AccessConfig = z.strictObject({
  add: z
    .strictObject({
      claims: Patterns,
      decides: Patterns,
      closed_to_agents: Patterns,
      session_reads: Patterns,
      scopes: Owned,
      queues: Owned,
    })
    .prefault({}),
});

/** A key that an earlier version had. */
const gone = (instead: string) => z.never(`is gone: use ${instead}`).optional();
const goneRows = (instead: string) => gone(`${instead}; rows are added, none is taken away`);

export const Limits = z.strictObject({
  /** Largest frame of the worker socket; a larger one closes it with 1009. */
  max_frame_bytes: z
    .int()
    .min(1_024)
    .default(64 * 1_048_576),
  /** Largest value of one state key, and of one stream item. */
  max_value_bytes: z
    .int()
    .min(1_024)
    .default(16 * 1_048_576),
  /** Largest JSON body of an http trigger; a larger one answers 413. Other bodies are streamed and never held. */
  max_body_bytes: z
    .int()
    .min(0)
    .default(10 * 1_048_576),
  /** Calls in flight that one connection may have made. */
  max_in_flight: z.int().min(1).default(10_000),
  /** How deep calls may nest. */
  max_depth: z.int().min(1).default(32),
  /** The deadline of calls whose caller sends none. */
  call_timeout_ms: z.int().min(1).default(660_000),
  /** How long an http trigger's function may take. */
  http_timeout_ms: z.int().min(1).default(30_000),
  /** How often the engine pings; two misses end a connection. */
  ping_interval_ms: z.int().min(10).default(5_000),
  /** A reader that makes no progress for this long is dropped. */
  slow_consumer_ms: z.int().min(10).default(10_000),
  /** Bytes that may wait for one reader before its senders are paused. */
  max_buffered_bytes: z
    .int()
    .min(1_024)
    .default(16 * 1_048_576),
});
export type Limits = z.infer<typeof Limits>;

/** A listener that others can reach takes proof of identity from all of them, and knows the names by which it is reached. */
function reachProblem({ host, auth, allowed_hosts }: { host: string; auth: string; allowed_hosts: readonly string[] }): string | undefined {
  if (LOOPBACK.test(host)) return undefined;
  if (auth !== "required") return "must be a loopback address (127.0.0.1, localhost or ::1) unless engine.auth is 'required'";
  return allowed_hosts.length > 0 ? undefined : "needs engine.allowed_hosts: the Host names by which others reach it";
}

const EngineShape = z.strictObject({
  host: Host.default("127.0.0.1"),
  port: Port.default(49_134),
  http: z
    .strictObject({ port: Port.default(3_111), allowed_origins: z.array(z.string().min(1)).default([]) })
    .default({ port: 3_111, allowed_origins: [] }),
  data: z.string().min(1).default(".iii"),
  /** Where the rows are: a file in the data folder, nowhere beyond this process, or a database server. */
  store: z
    .string()
    .regex(/^(sqlite|memory|postgres(ql)?:\/\/.+)$/, "must be sqlite, memory or postgres://user@host:port/database")
    .default("sqlite"),
  /** Where bundled workers run: in the engine's process, or all of them in one process beside it. */
  bundled: z.enum(["linked", "process"]).default("linked"),
  storage: gone("engine.store (sqlite, memory or postgres://user@host:port/database)"),
  queues: z
    .record(z.string().min(1), QueueConfig)
    .default({})
    .overwrite((queues) => ({ "turn-step": TURN_STEP, ...queues })),
  access: AccessConfig.prefault({}),
  /** `required`: every connection and request shows a token. */
  auth: z.enum(["local", "required"]).default("local"),
  /** Host names by which others reach the listeners, through a proxy that speaks TLS. */
  allowed_hosts: z.array(z.string().min(1)).default([]),
  human_only: goneRows("engine.access.add.closed_to_agents"),
  protected_scopes: goneRows("engine.access.add.scopes"),
  limits: Limits.default(Limits.parse({})),
});

export const EngineConfig = EngineShape.superRefine((engine, context) => {
  const problem = reachProblem(engine);
  if (problem !== undefined) context.addIssue({ code: "custom", path: ["host"], message: problem });
});
export type EngineConfig = z.infer<typeof EngineConfig>;

/** One entry of `workers`. Without `path`, `package`, `command` or `external`, `name` is a bundled worker. */
export const WorkerEntry = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,63}$/, "must be lower-case letters, digits and '-', starting with a letter"),
  enabled: z.boolean().default(true),
  config: z.record(z.string(), z.unknown()).default({}),
  isolate: z.boolean().default(false),
  path: z.string().min(1).optional(),
  package: z.string().min(1).optional(),
  command: z.array(z.string().min(1)).min(1).optional(),
  external: z.literal(true).optional(),
  env: z.record(z.string(), z.string()).default({}),
  /** Protected ids that it serves, and functions of the control plane that it calls; a bundled worker's name brings its manifest's. */
  provides: z.array(z.string().min(1)).default([]),
  calls: z.array(z.string().min(1)).default([]),
  restart: z
    .strictObject({
      policy: z.enum(["on-failure", "never"]).default("on-failure"),
      backoff_ms: z.int().min(10).max(600_000).default(500),
    })
    .default({ policy: "on-failure", backoff_ms: 500 }),
});
export type WorkerEntry = z.infer<typeof WorkerEntry>;

export const StackConfig = z.strictObject({
  version: z.literal(1),
  engine: EngineConfig.default(EngineConfig.parse({})),
  workers: z.array(WorkerEntry).default([]),
});
export type StackConfig = z.infer<typeof StackConfig>;

/** The engine's part with every default, for tests and for an engine without a file. */
export function defaultEngineConfig(changes: z.input<typeof EngineConfig> = {}): EngineConfig {
  return EngineConfig.parse(changes);
}
