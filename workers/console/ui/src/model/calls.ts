// Tool calls as the page shows them: what is called, where it stands, and what came back. Pure.
import type { AgentMessage, ContentBlock, FunctionCallBlock, FunctionResult, TurnStateView } from "@iii/contracts";

export type CallStatus = "waiting" | "running" | "awaiting" | "done" | "error" | "lost";

export interface CallState {
  readonly status: CallStatus;
  readonly function_id?: string;
  readonly args?: unknown;
  readonly text?: string;
  readonly details?: unknown;
  readonly duration_ms?: number;
}

/** The function a call is about: the meta tool's call is shown as the call that it asks for. */
export function target(block: FunctionCallBlock): { function_id: string; args: unknown } {
  const args = block.arguments;
  if (block.function_id !== "agent_trigger" || !isRecord(args) || typeof args["function"] !== "string") {
    return { function_id: block.function_id, args: args ?? block.arguments_text ?? null };
  }
  return { function_id: args["function"], args: parsed(args["payload"]) };
}

/** The state that a finished call leaves. */
export function finished(result: Pick<FunctionResult, "content" | "details">, isError: boolean, duration?: number): CallState {
  return {
    status: isError ? "error" : "done",
    text: textOf(result.content),
    details: result.details,
    ...(duration === undefined ? {} : { duration_ms: duration }),
  };
}

/** Who refused a call, when its result is a refusal. */
export function denial(details: unknown): { by: string; reason: string } | undefined {
  if (!isRecord(details) || details["status"] !== "denied") return undefined;
  return { by: String(details["denied_by"] ?? "unknown"), reason: String(details["reason"] ?? "") };
}

/** What a person's denial says, in the page's words: the reason only when one was given. */
export function denialText(reason: string): string {
  const given = reason.replace(/^Permission denied by user:?\s*/, "").trim();
  return given === "" || given === "deny" ? "You denied this." : `You denied this: ${given}`;
}

/** Every call's state as far as a transcript and a turn can tell. */
export function callsOf(messages: readonly AgentMessage[], turn: TurnStateView | null): Map<string, CallState> {
  const calls = new Map<string, CallState>();
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const block of message.content) if (block.type === "function_call") calls.set(block.id, { status: open(turn) });
    } else if (message.role === "function_result") {
      calls.set(message.function_call_id, finished(message, message.is_error));
    }
  }
  return withAwaiting(calls, turn);
}

/** Marks the calls that a turn is parked on, and those that its end left without a result. */
export function withAwaiting(calls: ReadonlyMap<string, CallState>, turn: TurnStateView | null): Map<string, CallState> {
  const parked = new Map(turn?.awaiting_approval?.map((call) => [call.function_call_id, call]));
  const next = new Map(calls);
  for (const id of new Set([...calls.keys(), ...parked.keys()])) {
    const call = calls.get(id) ?? { status: "waiting" };
    const hold = parked.get(id);
    if (!isOpen(call)) continue;
    if (hold !== undefined) next.set(id, { ...call, status: "awaiting", function_id: hold.function_id, args: hold.args });
    else if (isOver(turn)) next.set(id, { ...call, status: "lost" });
    else if (call.status === "awaiting") next.set(id, { ...call, status: "waiting" });
  }
  return next;
}

function isOpen(call: CallState): boolean {
  return call.status !== "done" && call.status !== "error";
}

/** Whether a turn has ended (no turn at all counts as ended). */
export function isOver(turn: TurnStateView | null): boolean {
  return turn === null || turn.state === "stopped" || turn.state === "failed";
}

/** All text of some content, blocks on their own lines. */
export function textOf(content: readonly ContentBlock[]): string {
  return content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
}

function open(turn: TurnStateView | null): CallStatus {
  return isOver(turn) ? "lost" : "waiting";
}

function parsed(payload: unknown): unknown {
  if (typeof payload !== "string") return payload ?? {};
  try {
    return JSON.parse(payload);
  } catch {
    return payload;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
