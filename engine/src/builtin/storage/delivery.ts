// Delivers trigger events of bindings that are not durable: in order per lane, a bounded number at a time, none stored.
import { toBusError } from "@iii/sdk";
import { type Binding, type EngineHost, Unanswered } from "../../ports/host.ts";
import { backoff } from "./backoff.ts";
import type { Cause } from "./cause.ts";

export interface TriggerEvent {
  readonly binding: Binding;
  readonly condition: string | undefined;
  readonly payload: unknown;
  readonly cause: Cause;
}

export interface DeliveryRules {
  /** Name of the engine's span around each delivery. */
  readonly span: string;
  /** How many events of one lane may be unanswered. Calls still start in order. */
  readonly in_flight: number;
  /** How often an event is sent again when its executor went away. */
  readonly retries: number;
  /** Events that may wait in one lane; more are dropped and logged. */
  readonly limit: number;
}

interface LaneState {
  readonly waiting: TriggerEvent[];
  running: number;
  /** A condition is being asked: nothing may overtake its event. */
  asking: boolean;
  overflowing: boolean;
}

const RETRY_MS = 200;

export class TriggerDelivery {
  readonly #lanes = new Map<string, LaneState>();
  readonly #host: EngineHost;
  readonly #rules: DeliveryRules;
  readonly #bound: (binding: Binding) => boolean;

  constructor(host: EngineHost, rules: DeliveryRules, bound: (binding: Binding) => boolean) {
    this.#host = host;
    this.#rules = rules;
    this.#bound = bound;
  }

  /** Adds an event to a lane; the event leaves after those before it. */
  push(name: string, event: TriggerEvent): void {
    const lane = this.#lanes.get(name) ?? { waiting: [], running: 0, asking: false, overflowing: false };
    this.#lanes.set(name, lane);
    if (lane.waiting.length >= this.#rules.limit) {
      if (!lane.overflowing)
        this.#host.log.error({ ...about(event), limit: this.#rules.limit }, "a subscriber is too slow: events are dropped");
      lane.overflowing = true;
      return;
    }
    lane.waiting.push(event);
    this.#pump(name, lane);
  }

  #pump(name: string, lane: LaneState): void {
    while (!lane.asking && lane.running < this.#rules.in_flight) {
      const event = lane.waiting.shift();
      if (event === undefined) break;
      lane.overflowing = false;
      lane.running += 1;
      void this.#deliver(name, lane, event);
    }
    if (lane.running === 0 && lane.waiting.length === 0) this.#lanes.delete(name);
  }

  /** Never rejects. */
  async #deliver(name: string, lane: LaneState, event: TriggerEvent): Promise<void> {
    const { traceparent, baggage } = event.cause;
    const span = traceparent === undefined ? undefined : this.#host.tracer.start(this.#rules.span, { traceparent, baggage });
    const under = span === undefined || span.traceparent === "" ? traceparent : span.traceparent;
    try {
      const wanted = event.condition === undefined || (await this.#ask(lane, event.condition, event, under));
      if (wanted && this.#bound(event.binding)) {
        const answered = this.#call(event, under, 0);
        if (event.condition !== undefined) this.#pump(name, lane);
        await answered;
      }
      span?.end();
    } catch (thrown) {
      const { code, message } = toBusError(thrown);
      span?.end({ code, message });
      this.#host.log.warn({ ...about(event), code, error: message }, "a trigger's function failed");
    } finally {
      lane.running -= 1;
      this.#pump(name, lane);
    }
  }

  /** The condition's verdict: only `false` skips; nothing of the lane overtakes the question. */
  async #ask(lane: LaneState, condition: string, event: TriggerEvent, traceparent: string | undefined): Promise<boolean> {
    const { baggage, origin, depth, principal, session } = event.cause;
    const by = event.binding.principal;
    lane.asking = true;
    try {
      const call = {
        function_id: condition,
        payload: event.payload,
        traceparent,
        baggage,
        origin,
        principal,
        session,
        by,
        depth: depth + 1,
      };
      return (await this.#host.invoke(call)) !== false;
    } finally {
      lane.asking = false;
    }
  }

  async #call(event: TriggerEvent, traceparent: string | undefined, tries: number): Promise<void> {
    const { function_id, metadata, principal: by } = event.binding;
    const { baggage, origin, depth, principal, session } = event.cause;
    const about = { function_id, metadata, traceparent, baggage, origin, principal, session, by, depth: depth + 1 };
    try {
      await this.#host.invoke({ ...about, payload: event.payload });
    } catch (thrown) {
      const lost = thrown instanceof Unanswered && thrown.code === "invocation_stopped";
      if (!lost || tries >= this.#rules.retries) throw thrown;
      await new Promise<void>((resolve) => this.#host.clock.setTimer(resolve, backoff(RETRY_MS, tries + 1)));
      if (this.#bound(event.binding)) await this.#call(event, traceparent, tries + 1);
    }
  }
}

function about({ binding }: TriggerEvent): object {
  return { trigger_id: binding.id, trigger_type: binding.trigger_type, function_id: binding.function_id };
}
