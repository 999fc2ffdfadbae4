// What this connection has registered, and the frames that register it again after a reconnect. Sends nothing itself.
import type { Handler, RegisterOptions, TriggerSpec } from "../definition.ts";
import type { FrameOf } from "../protocol/frames.ts";

export interface ServedFunction {
  readonly id: string;
  readonly handler: Handler;
  readonly options: RegisterOptions;
}

export interface BoundTrigger extends TriggerSpec {
  readonly id: string;
}

export function functionFrame({ id, options }: ServedFunction): FrameOf<"registerfunction"> {
  return { type: "registerfunction", id, ...options };
}

export function triggerFrame(trigger: BoundTrigger): FrameOf<"registertrigger"> {
  const { id, type, function_id, config = null, metadata } = trigger;
  return { type: "registertrigger", id, trigger_type: type, function_id, config, ...(metadata === undefined ? {} : { metadata }) };
}

export class Registrations {
  readonly functions = new Map<string, ServedFunction>();
  readonly triggers = new Map<string, BoundTrigger>();
  worker_id: string | undefined;
  /** The largest message that the engine takes, as far as it has said. */
  max_frame_bytes: number | undefined;
  /** The client is on its way out: what it has registered is not offered again. */
  leaving = false;
  #reattach: FrameOf<"reattach"> | undefined;

  /** The engine has named this connection. The token lets the next connection take its place. */
  welcome({ worker_id, reattach_token: token, max_frame_bytes }: FrameOf<"workerregistered">): void {
    this.worker_id = worker_id;
    this.max_frame_bytes = max_frame_bytes;
    this.#reattach = token === undefined ? undefined : { type: "reattach", previous_worker_id: worker_id, reattach_token: token };
  }

  /** Everything to send first on a new connection, in the order in which the engine must see it. */
  replay(): readonly object[] {
    // Kept until a new token arrives: a connection that drops before the engine named it must not lose the way back.
    const reattach = this.#reattach === undefined ? [] : [this.#reattach];
    if (this.leaving) return reattach;
    return [...reattach, ...[...this.functions.values()].map(functionFrame), ...[...this.triggers.values()].map(triggerFrame)];
  }
}
