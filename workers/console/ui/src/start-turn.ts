// Posts one turn through the meta-worker.
import type { AgentMessage } from "@iii/contracts";
import type { Iii } from "@iii/sdk";
import type * as Harness from "@iii/worker-harness/contract";
import type * as Turn from "@iii/worker-turn-orchestrator/contract";
import { call } from "./bus.ts";
import { advice } from "./model/advice.ts";

/** Empty provider and model: the meta-worker's default runs. */
export interface Choice {
  readonly provider: string;
  readonly model: string;
  readonly mode: "plan" | "ask" | "agent";
}

/** A connection that broke in mid-call is tried once more: the message id makes the second try the same turn. */
export async function startTurn(
  iii: Iii,
  session_id: string,
  message_id: string,
  message: AgentMessage,
  choice: Choice,
): Promise<Turn.RunStartResult> {
  const { provider, model, mode } = choice;
  const named = provider === "" ? {} : { provider, model };
  const request = { session_id, message_id, payload: { ...named, mode, message_id, messages: [message] } };
  const ask = () => call<typeof Harness.harnessTrigger>(iii, "harness::trigger", request, 30_000);
  const answer = await ask().catch((error: unknown) => {
    const { code } = advice(error);
    if (code === "disconnected" || code === "invocation_stopped") return ask();
    throw error;
  });
  const body = answer.body as Turn.RunStartResult & { error?: unknown };
  if (answer.status_code < 400) return body;
  throw body.error ?? { code: body.reason ?? "session_busy", message: "The session is busy." };
}
