// Tells the bindings of one trigger type that something changed: at once, or gathered over a moment.
import { type Timer, toBusError } from "@iii/sdk";
import type { Binding, EngineHost } from "../../ports/host.ts";

const GATHER_MS = 50;

export class Available {
  readonly #host: EngineHost;
  readonly #payload: () => unknown;
  readonly #bindings = new Map<string, Binding>();
  #timer: Timer | undefined;

  /** `payload` is made when gathered changes are told. */
  constructor(host: EngineHost, payload: () => unknown) {
    this.#host = host;
    this.#payload = payload;
  }

  bind(binding: Binding): void {
    this.#bindings.set(binding.id, binding);
  }

  unbind(binding: Binding): void {
    this.#bindings.delete(binding.id);
  }

  /** Something changed: told soon, together with what else changes until then. */
  changed(): void {
    if (this.#bindings.size === 0) return;
    this.#timer ??= this.#host.clock.setTimer(() => {
      this.#timer = undefined;
      this.fire(this.#payload());
    }, GATHER_MS);
  }

  fire(payload: unknown): void {
    for (const binding of [...this.#bindings.values()]) void this.#tell(binding, payload);
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** Never rejects. */
  async #tell({ function_id, metadata, principal: by }: Binding, payload: unknown): Promise<void> {
    try {
      await this.#host.invoke({ function_id, payload, metadata, by });
    } catch (thrown) {
      this.#host.log.debug({ function_id, code: toBusError(thrown).code }, "a function that waits for changes failed");
    }
  }
}
