// Asks the model once: opens a channel, has the provider write into it, shows the deltas, and gives the one message it ends with.
// Changes nothing durable. A stream that ends without its terminal frame is an error, whatever was said before.
import { type AssistantMessage, AssistantMessageEvent, providerStream } from "@iii/contracts";
import { wellFormed } from "@iii/contracts/well-formed";
import { BusError, type ChannelReader, toBusError } from "@iii/sdk";
import { type Deps, pause, waitServed, whenAborted, within } from "../deps.ts";
import { effectKey, type TurnEvent } from "../machine/events.ts";
import { planCalls, uniqueCallIds } from "../machine/plan.ts";
import type { PendingEntry, RunRequest, TurnRecord } from "../machine/record.ts";
import { messageId } from "../machine/rounds.ts";
import { AGENT_TRIGGER } from "../run/prompt.ts";
import { modelMessages, usedCallIds } from "./context.ts";
import { isDelta, openUpdates, type Updates } from "./updates.ts";

const PROVIDER_WAIT_MS = 30_000;
/** How long frames may still be on their way after the provider's call has ended. */
const TAIL_MS = 5_000;
/** How long a cancelled provider may take to close its request before the turn goes on without it. */
const CANCEL_MS = 6_000;

type Generated = TurnEvent & { type: "generated" };
type Ended = { message: AssistantMessage; streamed: boolean; retryable: boolean };

export interface Ask {
  readonly record: TurnRecord;
  readonly request: RunRequest;
  readonly entries: readonly PendingEntry[];
}

/** The text that came before a stream broke off. Calls are left out: one that was cut must not run. */
class Collected {
  readonly #blocks = new Map<number, { type: "text" | "thinking"; text: string }>();
  streamed = false;

  add(event: AssistantMessageEvent): void {
    if (!isDelta(event)) return;
    this.streamed = true;
    if (event.type === "functioncall_delta") return;
    const block = event.block ?? 0;
    const type = event.type === "text_delta" ? ("text" as const) : ("thinking" as const);
    const known = this.#blocks.get(block);
    if (known?.type === type) known.text += event.delta;
    else this.#blocks.set(block, { type, text: event.delta });
  }

  content(): AssistantMessage["content"] {
    const blocks = [...this.#blocks.entries()].toSorted(([a], [b]) => a - b);
    return blocks.filter(([, block]) => block.text !== "").map(([, block]) => ({ ...block, text: block.text.toWellFormed() }));
  }
}

function failed(ask: Ask, now: number, collected: Collected, kind: "transient" | "permanent", text: string): Ended {
  const { model, provider } = ask.request;
  const mark = { stop_reason: "error" as const, error_kind: kind, error_message: text };
  const message: AssistantMessage = { role: "assistant", content: collected.content(), ...mark, model, provider, timestamp: now };
  return { message, streamed: collected.streamed, retryable: kind === "transient" };
}

function abortedAnswer(ask: Ask, now: number, collected: Collected): Ended {
  const { model, provider } = ask.request;
  const message: AssistantMessage = {
    role: "assistant",
    content: collected.content(),
    stop_reason: "aborted",
    model,
    provider,
    timestamp: now,
  };
  return { message, streamed: collected.streamed, retryable: false };
}

function terminal(event: AssistantMessageEvent, collected: Collected): Ended | undefined {
  if (event.type === "done") return { message: wellFormed(event.message), streamed: collected.streamed, retryable: false };
  if (event.type !== "error") return undefined;
  const kind = event.error.error_kind;
  return { message: wellFormed(event.error), streamed: collected.streamed, retryable: kind === "transient" || kind === "rate_limited" };
}

function decode(frame: string | Uint8Array): AssistantMessageEvent | undefined {
  if (typeof frame !== "string") return undefined;
  try {
    return AssistantMessageEvent.safeParse(JSON.parse(frame)).data;
  } catch {
    return undefined; // not JSON: the frame is skipped, and the missing terminal frame will tell
  }
}

/** Reads to the terminal frame; undefined when the channel ended without one. */
async function pump(deps: Deps, reader: ChannelReader, updates: Updates, collected: Collected): Promise<Ended | undefined> {
  try {
    for await (const frame of reader) {
      const event = decode(frame);
      if (event === undefined) {
        deps.log.warn({ frame: String(frame).slice(0, 200) }, "a provider frame could not be read and is skipped");
        continue;
      }
      const first = !collected.streamed;
      collected.add(event);
      const end = terminal(event, collected);
      if (end !== undefined) return end;
      updates.push(event);
      if (collected.streamed) await deps.point(first ? "stream.first_token" : "stream.mid");
    }
  } catch (thrown) {
    deps.log.warn({ err: thrown }, "the provider's channel broke off");
  }
  return undefined;
}

/** One call of the provider, with its channel. `why` is set when the call itself failed. */
async function callProvider(ask: Ask, deps: Deps, signal: AbortSignal, updates: Updates, collected: Collected) {
  const { model, system_prompt, provider, thinking_level, max_output_tokens } = ask.request;
  const channel = await deps.iii.createChannel();
  const messages = modelMessages(ask.entries.map((entry) => entry.message));
  const payload = {
    writer_ref: channel.writerRef,
    model,
    system_prompt,
    messages,
    tools: [AGENT_TRIGGER],
    ...(thinking_level === undefined ? {} : { thinking_level }),
    ...(max_output_tokens === undefined ? {} : { max_output_tokens }),
  };
  let why: BusError | undefined;
  const over = new AbortController();
  const call = deps.iii.trigger(providerStream(provider), payload, { timeout_ms: deps.config.model_timeout_ms, signal }).then(
    () => undefined,
    (thrown: unknown) => {
      why = toBusError(thrown);
    },
  );
  const tail = call.then(() => pause(deps.clock, why === undefined ? TAIL_MS : 0, over.signal)).then(() => undefined);
  const end = await Promise.race([pump(deps, channel.reader, updates, collected), tail, whenAborted(signal).then(() => undefined)]);
  channel.reader.close();
  if (end === undefined) await within(deps.clock, CANCEL_MS, call, () => undefined);
  over.abort("over"); // a reason of our own: the default one is an exception with a stack
  return { end, why };
}

async function stream(ask: Ask, deps: Deps, signal: AbortSignal): Promise<Ended> {
  const { record, request } = ask;
  const collected = new Collected();
  const { id } = providerStream(request.provider);
  const updates = openUpdates(deps, { session_id: record.session_id, message_id: messageId(record), attempt: record.attempt });
  let { end, why } = await callProvider(ask, deps, signal, updates, collected);
  if (why?.code === "function_not_found" && !signal.aborted) {
    if (await waitServed(deps, id, PROVIDER_WAIT_MS, signal)) ({ end, why } = await callProvider(ask, deps, signal, updates, collected));
    else why = new BusError("provider_unknown", `provider '${request.provider}' is not connected: nobody serves ${id}`);
  }
  await updates.close();
  if (end !== undefined) return end;
  if (signal.aborted) return abortedAnswer(ask, deps.clock.now(), collected);
  return cutOff(ask, deps.clock.now(), collected, why);
}

function cutOff(ask: Ask, now: number, collected: Collected, why: BusError | undefined): Ended {
  if (why === undefined)
    return failed(ask, now, collected, "transient", "stream cut: the provider's stream ended before its terminal frame");
  const kind = why.retryable ? "transient" : "permanent";
  return failed(ask, now, collected, kind, `stream cut: ${why.code}: ${why.message}`);
}

/** Runs one attempt of the current model call. Never throws for what the provider does: its failures are messages. */
export async function generate(ask: Ask, deps: Deps, signal: AbortSignal): Promise<Generated> {
  const answers = effectKey.generate(ask.record);
  const ended = signal.aborted ? abortedAnswer(ask, deps.clock.now(), new Collected()) : await stream(ask, deps, signal);
  await deps.point("stream.end_before_commit");
  const { turn_id, turn_count } = ask.record;
  const used = usedCallIds(ask.entries.map((entry) => entry.message));
  const message = uniqueCallIds(ended.message, used, `c_${turn_id}_${turn_count}`);
  const runs = message.stop_reason !== "error" && message.stop_reason !== "aborted";
  const calls = runs ? planCalls(message) : [];
  return { type: "generated", answers, now: deps.clock.now(), message, calls, streamed: ended.streamed, retryable: ended.retryable };
}
