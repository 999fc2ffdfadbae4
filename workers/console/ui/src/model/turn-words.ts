// Where a turn stands, in a person's words. Pure.
import type { TurnStateView } from "@iii/contracts";
import { isOver } from "./calls.ts";

const RUNNING = {
  provisioning: "starting",
  assistant_streaming: "model is answering",
  function_execute: "running a function",
  function_awaiting_approval: "waits for your decision",
  steering_check: "deciding what is next",
} as const;

const ENDED: Readonly<Record<string, string>> = {
  end: "done",
  error: "failed",
  aborted: "stopped",
  length: "cut: longest answer reached",
  max_turns: "stopped: most rounds reached",
};

export interface TurnWords {
  readonly text: string;
  readonly tone: "quiet" | "busy" | "warn" | "bad";
}

/** `live`: what the page shows is known to be so now. Without that, what a turn was doing is no longer known. */
export function turnWords(turn: TurnStateView, live: boolean): TurnWords {
  if (turn.state === "failed") return { text: "failed", tone: "bad" };
  if (turn.state === "stopped") return ended(turn.stop_reason);
  const text = RUNNING[turn.state];
  if (!live) return { text: `last seen: ${text}`, tone: "warn" };
  return { text, tone: turn.state === "function_awaiting_approval" ? "warn" : "busy" };
}

function ended(reason: string | undefined): TurnWords {
  if (reason === undefined) return { text: "stopped", tone: "quiet" };
  return { text: ENDED[reason] ?? `stopped: ${reason}`, tone: reason === "error" ? "bad" : "quiet" };
}

/** One polite sentence for who listens instead of looking. */
export function announcement(turn: TurnStateView | null): string {
  if (turn === null) return "";
  if (turn.state === "function_awaiting_approval")
    return `A call waits for your decision: ${turn.awaiting_approval?.[0]?.function_id ?? ""}`;
  if (turn.state === "failed") return `The turn failed: ${turn.error?.message ?? ""}`;
  if (!isOver(turn)) return "A turn is running.";
  return turn.stop_reason === "error" ? "The turn failed." : "The turn is done.";
}
