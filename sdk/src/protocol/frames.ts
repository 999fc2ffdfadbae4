// Every message of the iii protocol: one table from `type` to schema, from which the types follow. Nothing about how a message is handled.
// Additions of ours are marked; official clients ignore unknown keys, and nothing they need depends on ours.
import { z } from "zod";

/** Needed for what the frame is about: a frame without it is refused. */
const text = z.string().min(1);
/** Of another type it is as good as absent: clients of every age keep working, and no frame is lost for an ornament. */
const lax = <S extends z.ZodType>(schema: S) => schema.optional().catch(undefined);
const any = z.unknown().optional();

/** On whose behalf a call runs. `agent` is the mark of a model's tool call: it can be added on the way, never removed. */
const Origin = z.enum(["agent", "worker", "browser", "engine"]);
export type Origin = z.infer<typeof Origin>;

/** Whom the engine knows: a person's key, the token of an entry of config.yaml, or nobody who proved anything. */
const Principal = z.object({ kind: z.enum(["operator", "entry", "none"]), name: z.string() }).readonly();
export type Principal = z.infer<typeof Principal>;

/** Issued by the engine for the executor of a call (addition of ours). */
const CallContext = z.object({
  caller: z.string(),
  origin: Origin,
  /** A date, in ms since the epoch. */
  deadline_ms: z.number().nullable(),
  /** What was left when the call was sent, for waits that a step of the clock must not move. */
  remaining_ms: z.number().nullable().optional(),
  /** Counts nested calls. */
  depth: z.number(),
  /** Who makes the call, or made the event or message that it serves. Older engines leave it out. */
  principal: Principal.optional(),
  /** The session that the agent's mark carries. */
  session_id: z.string().optional(),
});
export type CallContext = z.infer<typeof CallContext>;

const count = z.number().nonnegative();
const Action = z.discriminatedUnion("type", [
  z.object({ type: z.literal("void") }),
  z.object({ type: z.literal("enqueue"), queue: z.string(), delay_ms: lax(count), dedupe_key: lax(z.string()) }),
]);
export type Action = z.infer<typeof Action>;

const trace = { traceparent: lax(z.string()), baggage: lax(z.string()) };

export const FRAMES = {
  registerfunction: z.object({
    type: z.literal("registerfunction"),
    id: text,
    description: lax(text),
    request_format: any,
    response_format: any,
    metadata: any,
    invocation: any,
  }),
  unregisterfunction: z.object({ type: z.literal("unregisterfunction"), id: text }),
  registertriggertype: z.object({
    type: z.literal("registertriggertype"),
    id: text,
    description: lax(text),
    trigger_request_format: any,
    call_request_format: any,
  }),
  unregistertriggertype: z.object({ type: z.literal("unregistertriggertype"), id: text }),
  registertrigger: z.object({
    type: z.literal("registertrigger"),
    id: text,
    trigger_type: text,
    function_id: text,
    config: any,
    metadata: any,
  }),
  unregistertrigger: z.object({ type: z.literal("unregistertrigger"), id: text, trigger_type: lax(text) }),
  triggerregistrationresult: z.object({
    type: z.literal("triggerregistrationresult"),
    id: text,
    trigger_type: lax(z.string()),
    function_id: lax(z.string()),
    error: any,
  }),
  invokefunction: z.object({
    type: z.literal("invokefunction"),
    /** A UUID. Absent: no reply is wanted. */
    invocation_id: lax(text),
    function_id: text.max(256),
    ...trace,
    action: Action.nullish(),
    metadata: any,
    /** Ours, caller to engine: how long the caller waits. 0 = as long as the executor's connection answers. */
    timeout_ms: lax(count),
    /** Ours, caller to engine: the invocation, running on this connection, that this call is made for. */
    parent: lax(text),
    /** Ours, caller to engine: a claim that can only lower rights. */
    origin: lax(z.literal("agent")),
    /** Ours, caller to engine: the session that a marked call is made for. Believed of whoever runs the turns. */
    session_id: lax(text),
    /** Ours, engine to executor. */
    context: lax(CallContext),
    /** The payload. Kept last: the engine routes by the keys before it and copies its bytes through untouched. */
    data: any,
  }),
  invocationresult: z.object({
    type: z.literal("invocationresult"),
    invocation_id: text,
    function_id: lax(z.string()),
    /** `{code, message, stacktrace?, details?}`; whatever else stands here is a failure all the same. */
    error: any,
    ...trace,
    /** Kept last, as `data` is. */
    result: any,
  }),
  /** Ours, both ways: the caller no longer wants the result; the executor should stop and still answer. */
  cancel: z.object({ type: z.literal("cancel"), invocation_id: text }),
  registerservice: z.object({ type: z.literal("registerservice") }),
  ping: z.object({ type: z.literal("ping") }),
  pong: z.object({ type: z.literal("pong") }),
  reattach: z.object({ type: z.literal("reattach"), previous_worker_id: text, reattach_token: text }),
  workerregistered: z.object({
    type: z.literal("workerregistered"),
    worker_id: text,
    reattach_token: lax(text),
    /** Ours: the largest message that the engine takes; a larger one ends the connection. */
    max_frame_bytes: lax(count),
  }),
  error: z.object({ type: z.literal("error"), error: any }),
} as const;

export type FrameType = keyof typeof FRAMES;
export type FrameOf<T extends FrameType> = z.infer<(typeof FRAMES)[T]>;
export type Frame = { [T in FrameType]: FrameOf<T> }[FrameType];

export const isFrameType = (type: unknown): type is FrameType => typeof type === "string" && Object.hasOwn(FRAMES, type);
