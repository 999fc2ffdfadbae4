// What the orchestrator's tests share: a provider that plays a script, a gate with fixed answers, and tools that keep a ledger.
import {
  AGENT_EVENTS,
  type AgentEvent,
  type AgentMessage,
  type AssistantMessage,
  type AssistantMessageEvent,
  providerStream,
  type TurnStateView,
} from "@iii/contracts";
import { streamRead } from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { type Call, defineFunction, defineWorker } from "@iii/sdk";
import { checkPermissions } from "@iii/worker-policy/contract";
import { z } from "zod";
import { runStart, turnGetState } from "../src/contract.ts";
import { orchestrator } from "../src/register.ts";

export type Reply =
  | AssistantMessage["content"]
  | { stop: AssistantMessage["stop_reason"]; content: AssistantMessage["content"]; kind?: AssistantMessage["error_kind"] }
  | "cut"
  | "hang";

export const text = (value: string) => ({ type: "text" as const, text: value });
export const call = (fn: string, payload: unknown = {}, id = `call_${fn.replaceAll(":", "")}`) => ({
  type: "function_call" as const,
  id,
  function_id: "agent_trigger",
  arguments: { function: fn, payload },
});
export const user = (value: string): AgentMessage => ({ role: "user", content: [text(value)], timestamp: 1 });

/** Containers inside each other, lists and objects in turn. */
export function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

type Spoken = Exclude<Reply, "cut" | "hang">;

function stopOf(reply: Spoken): AssistantMessage["stop_reason"] {
  if (!Array.isArray(reply)) return reply.stop;
  return reply.some((part) => part.type === "function_call") ? "function_call" : "end";
}

async function play(reply: Spoken, model: string, send: (event: AssistantMessageEvent) => Promise<void>): Promise<void> {
  const content = Array.isArray(reply) ? reply : reply.content;
  for (const [block, part] of content.entries()) {
    if (part.type === "text") await send({ type: "text_delta", block, delta: part.text });
  }
  const stop_reason = stopOf(reply);
  const kind = Array.isArray(reply) || reply.kind === undefined ? {} : { error_kind: reply.kind, error_message: String(reply.kind) };
  const usage = { input: 3, output: 2 };
  const message: AssistantMessage = { role: "assistant", content, stop_reason, ...kind, model, provider: "toy", timestamp: 5, usage };
  await send(stop_reason === "error" ? { type: "error", error: message } : { type: "done", message });
}

/** Answers a request from what it holds: the reply depends on the conversation, so that a repeated request gets the same. */
export function toyProvider(answer: (messages: readonly AgentMessage[], nth: number) => Reply) {
  const seen: AgentMessage[][] = [];
  let aborted = 0;
  const worker = defineWorker({
    name: "toy-provider",
    config: z.object({}),
    register(on, { iii }) {
      on(providerStream("toy"), async (request, c: Call) => {
        seen.push(request.messages);
        const writer = iii.openWriter(request.writer_ref);
        const send = (event: AssistantMessageEvent) => writer.send(JSON.stringify(event));
        const reply = answer(request.messages, seen.length);
        await send({ type: "start" });
        if (reply === "hang") {
          await send({ type: "text_delta", block: 0, delta: "thinking about it" });
          await new Promise<void>((resolve) => {
            c.signal.addEventListener("abort", () => resolve(), { once: true });
          });
          aborted += 1;
        } else if (reply === "cut") await send({ type: "text_delta", block: 0, delta: "half an ans" });
        else await play(reply, request.model, send);
        await writer.close();
        return { ok: reply !== "hang" };
      });
    },
  });
  return { worker, seen, aborts: () => aborted };
}

export type Rule = "allow" | "deny" | "needs_approval";

export function gate(rule: (function_id: string) => Rule = () => "allow") {
  let asked = 0;
  const worker = defineWorker({
    name: "toy-gate",
    config: z.object({}),
    register(on) {
      on(checkPermissions, ({ function_id }) => {
        asked += 1;
        const decision = rule(function_id);
        return decision === "deny" ? { decision, rule_id: "toy", rule_action: "deny" as const } : { decision };
      });
    },
  });
  return { worker, asked: () => asked };
}

export interface Start {
  readonly function_id: string;
  readonly args: unknown;
  readonly key: string;
}

/** Tools `t::once` (at most once), `t::again` (idempotent), `t::pure` (no effect, parallel), `t::slow` (until cancelled), `t::throws`. */
export function tools() {
  const ledger: Start[] = [];
  let cancelled = 0;
  const input = z.unknown();
  const fn = (name: string, extra: { effect?: "none" | "idempotent"; parallel?: boolean } = {}) =>
    defineFunction({ id: `t::${name}`, about: "A tool.", input, output: z.unknown(), ...extra });
  const note = (c: Call, args: unknown): void => {
    const { idempotency_key = "" } = (c.metadata ?? {}) as { idempotency_key?: string };
    ledger.push({ function_id: c.function_id, args, key: idempotency_key });
  };
  const worker = defineWorker({
    name: "toy-tools",
    config: z.object({}),
    register(on) {
      on(fn("once"), (args, c) => {
        note(c, args);
        return { did: args };
      });
      on(fn("again", { effect: "idempotent" }), (args, c) => {
        note(c, args);
        return "again done";
      });
      on(fn("pure", { effect: "none", parallel: true }), (args, c) => {
        note(c, args);
        return { read: args };
      });
      on(fn("throws"), (args, c) => {
        note(c, args);
        throw new Error("the disk is on fire, and so is sk-live-0123456789abcdef");
      });
      on(fn("end"), (args, c) => {
        note(c, args);
        return { content: [text("bye")], details: {}, terminate: true };
      });
      on(fn("big"), (args) => "x".repeat(z.object({ size: z.number().default(600_000) }).parse(args).size));
      on(fn("deep"), (args) => nested(z.object({ levels: z.number() }).parse(args).levels));
      on(fn("slow"), async (args, c) => {
        note(c, args);
        await new Promise<void>((resolve) => {
          c.signal.addEventListener("abort", () => resolve(), { once: true });
        });
        cancelled += 1;
        return "cancelled";
      });
    },
  });
  return { worker, ledger, cancelled: () => cancelled };
}

type Bus = Awaited<ReturnType<typeof testBus>>;
type Workers = Parameters<typeof testBus>[0];

export async function stack(
  workers: NonNullable<Workers>,
  config: Record<string, unknown> = {},
  point?: (name: string) => void | Promise<void>,
): Promise<Bus> {
  const settings = { startup_grace_ms: 0, ...config };
  return testBus([...workers, { worker: orchestrator(point), config: settings }]);
}

export function start(bus: Bus, sid: string, messages: AgentMessage[], more: Record<string, unknown> = {}) {
  return bus.call(runStart, { session_id: sid, provider: "toy", model: "m", messages, ...more });
}

/** Lets the bus run, moving time on, until the view satisfies `done`. */
export async function until(bus: Bus, sid: string, done: (view: TurnStateView) => boolean, seconds = 120): Promise<TurnStateView> {
  let last: TurnStateView | null = null;
  for (let tick = 0; tick < seconds * 5; tick += 1) {
    await bus.settle();
    last = await bus.call(turnGetState, { session_id: sid });
    if (last !== null && done(last)) return last;
    await bus.clock.advance(200);
  }
  throw new Error(`it did not come true; the last view is ${JSON.stringify(last)}`);
}

export const ended = (view: TurnStateView): boolean => view.state === "stopped" || view.state === "failed";

export async function events(bus: Bus, sid: string): Promise<AgentEvent[]> {
  const { items } = await bus.call(streamRead, { stream_name: AGENT_EVENTS, group_id: sid });
  return items.map((item) => item.data as AgentEvent);
}

export async function transcript(bus: Bus, sid: string): Promise<AgentMessage[]> {
  const rows = await bus.call<{ entry_id: string; message: AgentMessage }[]>("state::list", { scope: "session", prefix: `${sid}/entry/` });
  return rows.map((row) => row.message);
}

export function results(messages: readonly AgentMessage[]) {
  return messages.filter((message) => message.role === "function_result");
}
