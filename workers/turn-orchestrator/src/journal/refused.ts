// What is written instead of content that the store refuses: the same event with an error in its place. It never says that something was
// not done: what ran, ran. Pure.
import type { AssistantMessage } from "@iii/contracts";
import { type BusError, toBusError } from "@iii/sdk";
import type { TurnEvent } from "../machine/events.ts";
import { errorResult, type Settled } from "../machine/results.ts";

const CONTENT_FAULTS = new Set([
  "VALUE_TOO_LARGE",
  "payload_too_large",
  "payload_too_deep",
  "invalid_payload",
  "invalid_frame",
  "serialization_error",
  "deserialization_error",
  "INVALID_ARGUMENTS",
]);

/** Whether a commit was refused for what it held: sent again unchanged it would be refused again. */
export function isContentFault(thrown: unknown): boolean {
  return CONTENT_FAULTS.has(toBusError(thrown).code);
}

/** A result in place of one that could not be stored. */
export function unstoredResult(why: { code: string; message: string }): Settled {
  const text = `the call ran and its result could not be stored: ${why.message.slice(0, 500)}`.toWellFormed();
  return errorResult("result_not_stored", text, { code: why.code });
}

/** A model's answer in place of one that could not be stored; the beginning of its text is kept. */
export function unstoredAnswer(message: AssistantMessage, why: { code: string; message: string }): AssistantMessage {
  const text = message.content
    .find((block) => block.type === "text")
    ?.text.slice(0, 2_000)
    .toWellFormed();
  const error_message = `the model's answer could not be stored: ${why.code}: ${why.message.slice(0, 500)}`.toWellFormed();
  const { model, provider, timestamp, usage } = message;
  return {
    role: "assistant",
    content: text === undefined ? [] : [{ type: "text", text }],
    stop_reason: "error",
    error_kind: "permanent",
    error_message,
    model,
    provider,
    timestamp,
    ...(usage === undefined ? {} : { usage }),
  };
}

export function withoutContent(event: TurnEvent, why: BusError): TurnEvent {
  switch (event.type) {
    case "generated":
      return { ...event, message: unstoredAnswer(event.message, why), calls: [] };
    case "returned": {
      if (event.outcome.type !== "result") return event;
      return { ...event, outcome: { type: "result", settled: unstoredResult(why), duration_ms: event.outcome.duration_ms } };
    }
    case "probed":
      return typeof event.answer === "string" ? event : { ...event, answer: unstoredResult(why) };
    default:
      return event;
  }
}
