// harness::trigger and ui::*: how a page starts turns and hears about them. Schemas and definitions only.
import { AgentEvent } from "@iii/contracts";
import { defineFunction, SessionId } from "@iii/sdk";
import { RunStartPayload } from "@iii/worker-turn-orchestrator/contract";
import { z } from "zod";

/** What a client may leave out of a run: the ids are made up, provider and model come from this worker's config. */
export const TriggerPayload = RunStartPayload.partial({ session_id: true, provider: true, model: true });
export const TriggerInput = z.object({
  session_id: SessionId.optional(),
  message_id: z.string().optional(),
  payload: TriggerPayload,
});
export type TriggerInput = z.infer<typeof TriggerInput>;

/** Accepts the input bare or as the `body` of an HTTP request. Status 200, 409 for a busy session; over HTTP also 400 for bad input. */
export const harnessTrigger = defineFunction({
  id: "harness::trigger",
  about: "Start a turn: seeds the trace ids, then calls run::start.",
  input: TriggerInput,
  output: z.object({ status_code: z.int(), headers: z.record(z.string(), z.string()), body: z.unknown() }),
  timeout_ms: 600_000,
});

/** A browser's id; it is the last part of the function ids that the page registers for pushes. */
export const BrowserId = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, "a browser id is 1 to 64 of A-Z a-z 0-9 _ . -");

/** `since` and `epoch` are the cursor of the last event the page has of this session. */
export const SubscribeInput = z.object({
  browser_id: BrowserId,
  session_id: SessionId.nullish(),
  since: z.int().nonnegative().optional(),
  epoch: z.string().optional(),
});
export type SubscribeInput = z.infer<typeof SubscribeInput>;

export const MissedEvent = z.object({ seq: z.int(), event: z.unknown() });
/**
 * With a session: `items` are the events after `since`, up to `seq`; with `gap` they are all that is kept of the session and replace
 * what the page has. Pushes after this answer have higher numbers; the page drops any that has not.
 */
export const SubscribeResult = z.object({
  ok: z.literal(true),
  total_browsers: z.int(),
  epoch: z.string().optional(),
  seq: z.int().optional(),
  gap: z.boolean().optional(),
  items: z.array(MissedEvent).optional(),
});
export type SubscribeResult = z.infer<typeof SubscribeResult>;
export const uiSubscribe = defineFunction({
  id: "ui::subscribe",
  about: "Push a session's events, or every session's, to a browser. Must be called again after this worker restarted.",
  input: SubscribeInput,
  output: SubscribeResult,
});
export const uiUnsubscribe = defineFunction({
  id: "ui::unsubscribe",
  about: "Stop the pushes of one session, or of all sessions.",
  input: z.object({ browser_id: BrowserId, session_id: SessionId.nullish() }),
  output: z.object({ ok: z.literal(true), total_browsers: z.int() }),
});

/** Served by the page. With `gap` and no event: pushes were dropped, subscribe again with the last `seq`. */
export const SessionPush = z.object({
  session_id: z.string(),
  event: AgentEvent.optional(),
  seq: z.int().optional(),
  epoch: z.string().optional(),
  gap: z.literal(true).optional(),
});
export type SessionPush = z.infer<typeof SessionPush>;
/** Served by the page. */
export const SessionsChangedPush = z.object({ added: z.array(z.string()), removed: z.array(z.string()) });
export type SessionsChangedPush = z.infer<typeof SessionsChangedPush>;

/** The function a page registers to receive `SessionPush`. */
export function sessionPushId(browser_id: string): string {
  return `ui::session::event::${browser_id}`;
}
/** The function a page registers to receive `SessionsChangedPush`. */
export function sessionsChangedId(browser_id: string): string {
  return `ui::sessions::changed::${browser_id}`;
}
