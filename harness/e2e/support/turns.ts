// What every e2e does with turns: post one, wait for its end, read what it left.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AgentMessage, TurnStateView } from "@iii/contracts";
import { type Stack, until } from "./stack.ts";

export interface Held {
  session_id: string;
  function_call_id: string;
  function_id: string;
  args: unknown;
  args_sha256: string;
  expires_at: number | null;
}

export interface Posted {
  status_code: number;
  body: { session_id: string; turn_id?: string; message_id?: string; started: boolean; queued?: boolean; deduplicated?: boolean };
}

export function userMessage(text: string): AgentMessage {
  return { role: "user", content: [{ type: "text", text }], timestamp: Date.now() };
}

export function post(stack: Stack, session_id: string, text: string, more: Record<string, unknown> = {}): Promise<Posted> {
  const { message_id, ...payload } = more;
  return stack.trigger<Posted>("harness::trigger", {
    session_id,
    ...(message_id === undefined ? {} : { message_id }),
    payload: { provider: "scripted", model: "demo", messages: [userMessage(text)], ...payload },
  });
}

export async function stateOf(stack: Stack, session_id: string): Promise<TurnStateView | null> {
  return (await stack.trigger<TurnStateView | null>("turn::get_state", { session_id })) ?? null;
}

export function ended(stack: Stack, session_id: string, ms = 40_000): Promise<TurnStateView> {
  return until(
    `the end of the turn of ${session_id}`,
    async () => {
      const view = await stateOf(stack, session_id);
      return view?.state === "stopped" || view?.state === "failed" ? view : undefined;
    },
    ms,
  );
}

export function pending(stack: Stack, session_id: string): Promise<Held[]> {
  return stack.trigger<Held[]>("approval::list_pending", { session_id });
}

export function parked(stack: Stack, session_id: string, count = 1): Promise<Held[]> {
  return until(`${count} held call(s) of ${session_id}`, async () => {
    const held = await pending(stack, session_id);
    return held.length >= count ? held : undefined;
  });
}

export interface Transcript {
  messages: AgentMessage[];
  calls: { id: string; function_id: string }[];
  results: { function_call_id: string; text: string; is_error: boolean; details: unknown }[];
  text: string;
}

/** The active path of a session, with its calls and results taken out. */
export async function transcript(stack: Stack, session_id: string): Promise<Transcript> {
  const { messages: rows } = await stack.trigger<{ messages: { message: AgentMessage }[] }>("session-tree::messages", { session_id });
  const messages = rows.map((row) => row.message);
  const calls: Transcript["calls"] = [];
  const results: Transcript["results"] = [];
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const block of message.content) if (block.type === "function_call") calls.push({ id: block.id, function_id: block.function_id });
    }
    if (message.role === "function_result") {
      const { function_call_id, is_error, details } = message;
      results.push({ function_call_id, text: textOf(message), is_error, details });
    }
  }
  return { messages, calls, results, text: messages.map(textOf).join("\n") };
}

export function textOf(message: AgentMessage | undefined): string {
  if (message === undefined || message.role === "custom") return "";
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

export function resolve(stack: Stack, held: Held, decision: "allow" | "deny", more: Record<string, unknown> = {}): Promise<unknown> {
  const { session_id, function_call_id } = held;
  return stack.trigger("approval::resolve", { session_id, function_call_id, decision, ...more });
}

const E2E = fileURLToPath(new URL("..", import.meta.url));

/** A config.yaml entry that runs one of our test programs as a foreign process. */
export function programEntry(name: string, file: string): string {
  return `  - name: ${name}\n    command: ${JSON.stringify([process.execPath, join(E2E, file)])}\n`;
}

/** The lines of a ledger, split into words: `start|end <call> <attempt key> <note>`. */
export function readLedger(path: string): string[][] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "));
}

/** How often each attempt was started, by its key. */
export function startsPerAttempt(path: string): Map<string, number> {
  const starts = new Map<string, number>();
  for (const [kind, call = "", attempt = ""] of readLedger(path)) {
    if (kind === "start") starts.set(`${call} ${attempt}`, (starts.get(`${call} ${attempt}`) ?? 0) + 1);
  }
  return starts;
}
