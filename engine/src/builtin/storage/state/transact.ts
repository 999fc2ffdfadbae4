// `state::transact`: everything is checked and planned first, then applied to memory in one run and committed at once.
import { BusError } from "@iii/sdk";
import type { z } from "zod";
import type { BuiltinCall } from "../../../ports/host.ts";
import { checkDepth } from "../../depth.ts";
import { type Cause, causeOf, queuedBaggage } from "../cause.ts";
import type { Batch, Ledger } from "../ledger.ts";
import { applyOps } from "../ops.ts";
import type { QueueHub } from "../queue/hub.ts";
import type { NewMessage, Queue } from "../queue/queue.ts";
import type { StreamHub } from "../stream/hub.ts";
import { jsonText } from "../text.ts";
import type { stateTransact, TransactEnqueue, TransactInput, TransactWrite } from "./contract.ts";
import { type StateTable, stateSpace } from "./table.ts";
import type { StateTriggers } from "./triggers.ts";

/** Hands `data` to the subscribers of a topic. */
export type Publish = (topic: string, data: unknown, cause: Cause) => void;

export interface TransactDeps {
  readonly ledger: Ledger;
  readonly table: StateTable;
  readonly triggers: StateTriggers;
  readonly hub: QueueHub;
  readonly streams: StreamHub;
  readonly publish: Publish;
}

type Input = z.output<typeof TransactInput>;
type Result = z.input<typeof stateTransact.output>;
type Planned = { scope: string; key: string; next: { value: unknown; text: string } | undefined };

/** The value after `write`. @throws BusError when an operation fails: in a transaction nothing is skipped. */
function valueAfter(write: z.output<typeof TransactWrite>, old: () => unknown): unknown {
  if (write.ops === undefined) return write.value ?? null;
  const { value, errors } = applyOps(old(), write.ops);
  const [first] = errors;
  if (first === undefined) return value;
  throw new BusError("INVALID_ARGUMENTS", `${write.scope}/${write.key}: operation ${first.op_index} failed: ${first.message}`, {
    details: { scope: write.scope, key: write.key, errors },
  });
}

function planWrites({ table, triggers }: TransactDeps, writes: Input["writes"], depth: number): Planned[] {
  const overlay = new Map<string, unknown>();
  return writes.map((write) => {
    const { scope, key } = write;
    triggers.guard(scope, key, depth);
    const id = JSON.stringify([scope, key]);
    const old = (): unknown => (overlay.has(id) ? overlay.get(id) : table.get(scope, key)?.value);
    const value = write.delete ? undefined : valueAfter(write, old);
    overlay.set(id, value);
    return { scope, key, next: write.delete ? undefined : { value, text: table.text(scope, key, value) } };
  });
}

function messageOf(entry: z.output<typeof TransactEnqueue>, group: string | undefined, cause: Cause): NewMessage {
  const own = entry.traceparent === undefined ? cause : { ...cause, traceparent: entry.traceparent, woken_by: cause.traceparent };
  const baggage = entry.baggage === undefined ? own.baggage : queuedBaggage(entry.baggage);
  return {
    function_id: entry.function_id,
    data: jsonText(entry.data, "a message's data"),
    group,
    // A queue is where a chain of calls ends: the next step of a long turn is not a deeper one.
    cause: { ...own, baggage, depth: 0 },
    delay_ms: entry.delay_ms,
    dedupe_key: entry.dedupe_key,
  };
}

/** Everything that was checked and can no longer fail. */
interface Plan {
  readonly writes: readonly Planned[];
  readonly queued: readonly { queue: Queue; message: NewMessage }[];
  readonly published: Input["publish"];
  readonly events: readonly { event: Input["events"][number]; text: string }[];
}

function plan(deps: TransactDeps, input: Input, cause: Cause): Plan {
  return {
    writes: planWrites(deps, input.writes, cause.depth),
    queued: input.enqueue.map((entry) => {
      const { queue, group } = deps.hub.accepts(entry.queue, entry.data);
      return { queue, message: messageOf(entry, group, cause) };
    }),
    published: input.publish.map(({ topic, data }) => {
      checkDepth(data, "a published value");
      return { topic, data };
    }),
    events: input.events.map((event) => ({ event, text: deps.streams.text(event.item_id, event.data) })),
  };
}

function apply(deps: TransactDeps, batch: Batch, input: Input, { writes, queued, published, events }: Plan, cause: Cause): number[] {
  const revs = writes.map(({ scope, key, next }) => {
    const change = next === undefined ? deps.table.remove(batch, scope, key) : deps.table.put(batch, scope, key, next.value, next.text);
    deps.triggers.emit(batch, change, cause);
    return change.rev;
  });
  for (const { queue, message } of queued) queue.add(batch, message);
  for (const { event, text } of events) deps.streams.put(batch, event, event.data ?? null, text, cause);
  for (const drop of input.drops) batch.after(() => deps.streams.drop(drop));
  for (const { topic, data } of published) batch.after(() => deps.publish(topic, data, cause));
  return revs;
}

/** @throws BusError `fenced`, `enqueue_error`, `INVALID_ARGUMENTS`, `VALUE_TOO_LARGE`, `payload_too_deep`, `trigger_loop`; nothing was changed then. */
export async function transact(deps: TransactDeps, input: Input, call: BuiltinCall): Promise<Result> {
  const delivery = input.ack === true ? deps.hub.delivery(call.parent) : undefined;
  for (const { scope, key, rev } of input.checks) {
    const now = deps.table.get(scope, key)?.rev ?? 0;
    if (now === rev) continue;
    await deps.ledger.settled(stateSpace(scope), key);
    return { ok: false, conflict: { scope, key, rev: now } };
  }
  const cause = causeOf(call);
  const planned = plan(deps, input, cause);
  const batch = deps.ledger.batch();
  if (delivery !== undefined) {
    delivery.settled = true;
    delivery.settle(batch);
  }
  const revs = apply(deps, batch, input, planned, cause);
  await batch.commit();
  return { ok: true, revs };
}
