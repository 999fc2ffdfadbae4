// Asks the model once: opens a channel, has the provider write into it, shows the deltas, and gives the one message it ends with.
// Changes nothing durable. A stream that ends without its terminal frame is an error, whatever was said before.
import { type AssistantMessage, AssistantMessageEvent, providerStream } from "@iii/contracts";
import { CONTENT_DEPTH, unstorable } from "@iii/contracts/storable";
import { wellFormed } from "@iii/contracts/well-formed";
import { BusError, type ChannelReader, isTooDeep, sleep, type Timer, toBusError, whenAborted, within } from "@iii/sdk";
import type { TranscriptEntry } from "@iii/worker-session/contract";
import { waitServed } from "../catalogue.ts";
import type { Deps } from "../deps.ts";
import { unstoredAnswer } from "../journal/refused.ts";
import { effectKey, type TurnEvent } from "../machine/events.ts";
import { planCalls, uniqueCallIds } from "../machine/plan.ts";
import type { RunRequest, TurnRecord } from "../machine/record.ts";
import { cut } from "../machine/results.ts";
import { messageId } from "../machine/rounds.ts";
import { AGENT_TRIGGER } from "../machine/tool.ts";
import { Collected } from "./collected.ts";
import { modelMessages, usedCallIds } from "./context.ts";
import { openUpdates, type Updates } from "./updates.ts";

const PROVIDER_WAIT_MS = 30_000;
/** How long frames may still be on their way after the provider's call has ended. */
const TAIL_MS = 5_000;
/** How long a cancelled provider may take to close its request before the turn goes on without it. */
const CANCEL_MS = 6_000;

/** One model call as a whole, however long it streams: far above what a provider allows itself. Silence ends it much sooner. */
const TOTAL_MS = 24 * 60 * 60_000;
/** One answer as JSON. It stands in several rows and events of one commit. */
const ANSWER_BYTES = 2 * 1024 * 1024;

/** So much of an error's text is kept. */
const ERROR_CHARS = 4_000;
/** Within a message, arguments stand some levels down. */
const ARGUMENT_DEPTH = CONTENT_DEPTH - 4;

type Generated = TurnEvent & { type: "generated" };
/** `vanished`: the provider's process went away before it said anything. */
type Ended = { message: AssistantMessage; streamed: boolean; vanished: boolean };

export interface Ask {
  readonly record: TurnRecord;
  readonly request: RunRequest;
  readonly entries: readonly TranscriptEntry[];
}

/** A message in place of an answer that did not come to its own end: what came of it, what it is thought to have cost, and why. */
function standIn(
  ask: Ask,
  now: number,
  collected: Collected,
  mark: Pick<AssistantMessage, "stop_reason" | "error_kind" | "error_message">,
): Ended {
  const { model, provider } = ask.request;
  const usage = collected.cost ? { usage: collected.usage(ask) } : {};
  const message: AssistantMessage = { role: "assistant", content: collected.content(), ...mark, ...usage, model, provider, timestamp: now };
  return { message: wellFormed(message), streamed: collected.streamed, vanished: false };
}

/** Arguments that nest too deep to be stored are taken out of their call, which is then answered as one whose arguments did not parse. */
function shallow(message: AssistantMessage): AssistantMessage {
  const content = message.content.map((block) =>
    block.type === "function_call" && isTooDeep(block.arguments, ARGUMENT_DEPTH)
      ? { ...block, arguments: null, arguments_text: `(left out: it nests more than ${ARGUMENT_DEPTH} levels deep)` }
      : block,
  );
  return { ...message, content };
}

/** The provider's own last word. One that cannot be stored is an error of that answer; what it does not tell of its cost is estimated. */
function terminal(ask: Ask, event: AssistantMessageEvent, collected: Collected): Ended | undefined {
  if (event.type !== "done" && event.type !== "error") return undefined;
  const said = shallow(event.type === "done" ? event.message : event.error);
  const fault = unstorable(said, ANSWER_BYTES);
  const message = wellFormed(fault === undefined ? said : unstoredAnswer(said, fault));
  const told = message.usage !== null && message.usage !== undefined;
  const usage =
    told || (event.type === "error" && !collected.cost) ? {} : { usage: collected.usage(ask, fault === undefined ? said.content : []) };
  return { message: { ...message, ...usage }, streamed: collected.streamed, vanished: false };
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
async function pump(
  ask: Ask,
  deps: Deps,
  reader: ChannelReader,
  updates: Updates,
  collected: Collected,
  heard: () => void,
): Promise<Ended | undefined> {
  try {
    for await (const frame of reader) {
      const event = decode(frame);
      if (event === undefined) {
        deps.log.warn({ frame: String(frame).slice(0, 200) }, "a provider frame could not be read and is skipped");
        continue;
      }
      heard();
      const first = !collected.streamed;
      collected.add(event);
      const end = terminal(ask, event, collected);
      if (end !== undefined) return end;
      updates.push(event);
      if (collected.streamed) await deps.point(first ? "stream.first_token" : "stream.mid");
    }
  } catch (thrown) {
    deps.log.warn({ err: thrown }, "the provider's channel broke off");
  }
  return undefined;
}

function requestOf({ request, entries }: Ask) {
  const { model, system_prompt, thinking_level, max_output_tokens } = request;
  return {
    model,
    system_prompt,
    messages: modelMessages(entries.map((entry) => entry.message)),
    tools: [AGENT_TRIGGER],
    ...(thinking_level === undefined ? {} : { thinking_level }),
    ...(max_output_tokens === undefined ? {} : { max_output_tokens }),
  };
}

/** Calls `tooLong` when nobody was heard for `ms`. */
function silenceAlarm(deps: Deps, ms: number, tooLong: () => void) {
  let last = deps.clock.monotonic();
  let timer: Timer;
  const look = (): void => {
    const left = last + ms - deps.clock.monotonic();
    if (left <= 0) tooLong();
    else timer = deps.clock.setTimer(look, left);
  };
  timer = deps.clock.setTimer(look, ms);
  return {
    heard() {
      last = deps.clock.monotonic();
    },
    stop: () => timer.cancel(),
  };
}

/** What a call of the provider came to: its last word, if it came, and the failure of the call itself, if it failed. */
interface Called {
  readonly end: Ended | undefined;
  readonly why: BusError | undefined;
}

/** One call of the provider, with its channel. Once it is cancelled it may still say what its answer cost, for a while. */
async function callProvider(ask: Ask, deps: Deps, signal: AbortSignal, updates: Updates, collected: Collected): Promise<Called> {
  const channel = await deps.iii.createChannel();
  const cancel = new AbortController();
  const silence = deps.config.model_timeout_ms;
  const alarm = silenceAlarm(deps, silence, () => cancel.abort(new BusError("TIMEOUT", `the provider said nothing for ${silence} ms`)));
  const over = new AbortController();
  let why: BusError | undefined;
  const options = { timeout_ms: TOTAL_MS, signal: AbortSignal.any([signal, cancel.signal]) };
  const call = deps.iii.trigger(providerStream(ask.request.provider), { ...requestOf(ask), writer_ref: channel.writerRef }, options).then(
    () => undefined,
    (thrown: unknown) => {
      why = toBusError(thrown);
    },
  );
  const cancelled = options.signal.aborted ? Promise.resolve() : whenAborted(options.signal);
  const tail = call.then(() => sleep(deps.clock, why === undefined || options.signal.aborted ? TAIL_MS : 0, over.signal));
  const late = cancelled.then(() => sleep(deps.clock, CANCEL_MS, over.signal));
  const end = await Promise.race([
    pump(ask, deps, channel.reader, updates, collected, alarm.heard),
    Promise.race([tail, late]).then(() => undefined),
  ]);
  alarm.stop();
  channel.reader.close();
  if (end === undefined) await within(deps.clock, CANCEL_MS, call, () => undefined);
  over.abort("over"); // an explicit reason avoids building a DOMException
  return { end, why: cancel.signal.aborted ? toBusError(cancel.signal.reason) : why };
}

async function stream(ask: Ask, deps: Deps, signal: AbortSignal, collected: Collected): Promise<Called> {
  const { record, request } = ask;
  const { id } = providerStream(request.provider);
  const updates = openUpdates(deps, { session_id: record.session_id, message_id: messageId(record), attempt: record.attempt });
  let called = await callProvider(ask, deps, signal, updates, collected);
  if (called.why?.code === "function_not_found" && !signal.aborted) {
    if (await waitServed(deps, id, PROVIDER_WAIT_MS, signal)) called = await callProvider(ask, deps, signal, updates, collected);
    else
      called = {
        end: undefined,
        why: new BusError("provider_unknown", `provider '${request.provider}' is not connected: nobody serves ${id}`),
      };
  }
  await updates.close();
  return called;
}

const GONE = new Set(["invocation_stopped", "disconnected"]);

/** Asks, and gives the one message that comes of it. */
async function answer(ask: Ask, deps: Deps, signal: AbortSignal): Promise<Ended> {
  const collected = new Collected();
  if (signal.aborted) return standIn(ask, deps.clock.now(), collected, { stop_reason: "aborted" });
  const { end, why } = await stream(ask, deps, signal, collected);
  if (end !== undefined) return end;
  const now = deps.clock.now();
  // A call that failed before anything came of it is not taken to have cost anything.
  collected.cost ||= signal.aborted || why === undefined || why.code === "TIMEOUT";
  if (signal.aborted) return standIn(ask, now, collected, { stop_reason: "aborted" });
  const what = why === undefined ? "the provider's stream ended before its terminal frame" : `${why.code}: ${why.message}`;
  const error_kind = why === undefined || why.retryable ? "transient" : "permanent";
  const ended = standIn(ask, now, collected, { stop_reason: "error", error_kind, error_message: cut(`stream cut: ${what}`, ERROR_CHARS) });
  return { ...ended, vanished: why !== undefined && GONE.has(why.code) && !collected.streamed };
}

/** Runs one attempt of the current model call. Never throws for what the provider does: its failures are messages. */
export async function generate(ask: Ask, deps: Deps, signal: AbortSignal): Promise<Generated> {
  const answers = effectKey.generate(ask.record);
  const ended = await answer(ask, deps, signal);
  await deps.point("stream.end_before_commit");
  const { turn_id, turn_count } = ask.record;
  const used = usedCallIds(ask.entries.map((entry) => entry.message));
  const message = uniqueCallIds(ended.message, used, `c_${turn_id}_${turn_count}`);
  const runs = message.stop_reason !== "error" && message.stop_reason !== "aborted";
  const { streamed, vanished } = ended;
  return { type: "generated", answers, now: deps.clock.now(), message, calls: runs ? planCalls(message) : [], streamed, vanished };
}
