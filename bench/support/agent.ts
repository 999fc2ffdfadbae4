// Turns against a running stack, timed from the request to the event that says the turn's end is on disk.
import { AGENT_TURN_END, type AgentEvent } from "@iii/contracts";
import type { Iii } from "@iii/sdk";

interface Told {
  readonly groupId: string;
  readonly event: { readonly data: AgentEvent };
}

export interface Model {
  readonly provider: string;
  readonly model: string;
  readonly text: string;
}

export class Agent {
  readonly #iii: Iii;
  readonly #ends = new Map<string, () => void>();
  #sessions = 0;

  constructor(iii: Iii) {
    this.#iii = iii;
    iii.registerFunction("bench::on_turn_end", (input) => {
      const { groupId, event } = input as Told;
      // Each round of a turn says this; the last one has no results, and is written in the commit that ends the turn.
      if (event.data.type === "turn_end" && event.data.function_results.length === 0) this.#ends.get(groupId)?.();
    });
    iii.registerTrigger({ type: "stream", function_id: "bench::on_turn_end", config: { stream_name: AGENT_TURN_END } });
  }

  /** One turn in a session of its own; returns the session's id. */
  async turn({ provider, model, text }: Model): Promise<string> {
    this.#sessions += 1;
    const session_id = `bench-${this.#sessions}`;
    const ended = new Promise<void>((resolve) => this.#ends.set(session_id, resolve));
    const messages = [{ role: "user", content: [{ type: "text", text }], timestamp: Date.now() }];
    await this.#iii.trigger("harness::trigger", { session_id, payload: { provider, model, messages } });
    await ended;
    this.#ends.delete(session_id);
    return session_id;
  }

  /** @throws Error unless the session's turn stopped after one call with one good result. */
  async check(session_id: string): Promise<void> {
    const view = await this.#iii.trigger<{ state: string; error?: unknown }>("turn::get_state", { session_id });
    if (view.state !== "stopped") throw new Error(`the turn of ${session_id} ended ${view.state}: ${JSON.stringify(view.error)}`);
    const { messages } = await this.#iii.trigger<{ messages: { message: { role: string; is_error?: boolean } }[] }>(
      "session-tree::messages",
      {
        session_id,
      },
    );
    const results = messages.filter(({ message }) => message.role === "function_result");
    if (results.length !== 1 || results[0]?.message.is_error === true) throw new Error(`${session_id} has ${JSON.stringify(results)}`);
  }
}
