// The meta-worker: harness::trigger and ui::*. It starts turns and tells pages about them, and takes no part in the turn itself.
import { AsyncLocalStorage } from "node:async_hooks";
import { AGENT_EVENTS, type AgentEvent } from "@iii/contracts";
import { StateEvent, StreamEvent, streamRead } from "@iii/engine/contract";
import { type Clock, defineFunction, defineWorker, type Iii, type Logger, type On, parsePayload, sleep, toBusError } from "@iii/sdk";
import { modelsDefault } from "@iii/worker-models-catalog/contract";
import { checkPermissions } from "@iii/worker-policy/contract";
import { runStart } from "@iii/worker-turn-orchestrator/contract";
import { z } from "zod";
import { Config } from "./config.ts";
import { harnessTrigger, SubscribeInput, sessionPushId, sessionsChangedId, uiSubscribe, uiUnsubscribe } from "./contract.ts";
import { requireBody, unwrap } from "./envelope.ts";
import { Fanout, type FanoutPorts } from "./fanout.ts";
import { type Defaults, isComplete, toAnswer, toErrorAnswer, toRun } from "./trigger.ts";

const RUN_TIMEOUT_MS = 600_000;
const PUSH_TIMEOUT_MS = 2_000;
const CATALOGUE_WAIT_MS = 5_000;
const CATALOGUE_ASK_MS = 100;
const LIMITS = { items: 1_000, bytes: 4_194_304 };

const onAgentEvent = defineFunction({
  id: "harness::fanout::agent_event_handler",
  about: "Takes one agent event and pushes it to the browsers that listen to its session.",
  input: StreamEvent,
  output: z.null(),
  internal: true,
});
const onSessionCreated = defineFunction({
  id: "harness::fanout::session_created",
  about: "Takes a change of the session index and tells browsers about new sessions.",
  input: StateEvent,
  output: z.null(),
  internal: true,
});

export const worker = defineWorker({
  name: "harness",
  config: Config,
  register(on, { config, iii, clock, random, log }) {
    const named = { provider: config.default_provider, model: config.default_model };
    serveTrigger(on, iii, defaultsOf(named, iii, clock), clock, () => random.uuid());
    serveBrowsers(on, iii, log);
    on.trigger({ type: "http", function_id: harnessTrigger.id, config: { api_path: "/harness/trigger", http_method: "POST" } });
    if (config.policy === "allow_all") {
      log.warn({}, "policy is allow_all: every tool call runs without asking");
      on(checkPermissions, () => ({ decision: "allow" as const, rule_id: "allow_all" }));
    }
  },
});

function serveTrigger(on: On, iii: Iii, defaults: () => Promise<Defaults>, clock: Clock, makeId: () => string): void {
  on(
    harnessTrigger,
    async (payload) => {
      const request = unwrap(payload, "payload");
      try {
        const body = requireBody(request);
        const run = toRun(body, isComplete(body) ? {} : await defaults(), clock.now(), makeId);
        const baggage = { "iii.session.id": run.session_id, "iii.message.id": run.message_id };
        return toAnswer(await iii.trigger(runStart, run, { baggage, timeout_ms: RUN_TIMEOUT_MS }));
      } catch (thrown) {
        if (!request.http) throw thrown;
        return toErrorAnswer(toBusError(thrown));
      }
    },
    { raw: true },
  );
}

/**
 * What the config names; else the catalogue's choice. At the start of a stack providers may still be telling the catalogue about their
 * models, so a catalogue that knows none, or is not there yet, is asked again for a while.
 */
function defaultsOf(config: Defaults, iii: Iii, clock: Clock): () => Promise<Defaults> {
  return async () => {
    if (config.provider !== undefined || config.model !== undefined) return config;
    const until = clock.monotonic() + CATALOGUE_WAIT_MS;
    for (;;) {
      const found = await iii.trigger(modelsDefault, {}).catch(() => null);
      if (found !== null) return { provider: found.provider, model: found.id };
      if (clock.monotonic() >= until) return config;
      await sleep(clock, CATALOGUE_ASK_MS);
    }
  };
}

function serveBrowsers(on: On, iii: Iii, log: Logger): void {
  const fanout = new Fanout(busPorts(iii, log), { limits: LIMITS, log });
  const raw = { raw: true } as const;
  on(uiSubscribe, (payload) => fanout.subscribe(parsePayload(SubscribeInput, unwrap(payload, "browser_id").input, uiSubscribe.id)), raw);
  on(
    uiUnsubscribe,
    (payload) => {
      const { browser_id, session_id } = parsePayload(uiUnsubscribe.input, unwrap(payload, "browser_id").input, uiUnsubscribe.id);
      fanout.unsubscribe(browser_id, session_id);
      return { ok: true as const, total_browsers: fanout.total };
    },
    raw,
  );
  // Synchronous: events must enter the queues in the order in which they come off the wire.
  on(onAgentEvent, (event) => {
    takeAgentEvent(fanout, event);
    return null;
  });
  on(onSessionCreated, ({ event_type, key }) => {
    if (event_type === "state:created") fanout.sessionCreated(key);
    return null;
  });
}

/** Deletions are the orchestrator dropping deltas whose message is complete: no page needs to hear of them. */
function takeAgentEvent(fanout: Fanout, { groupId, event, seq, epoch }: StreamEvent): void {
  if (event.type === "delete") return;
  const data = event.type === "event" ? event.event.data : event.data;
  // Written by whatever orchestrator is installed; pages read it as they read the stream itself.
  fanout.event(groupId, data as AgentEvent, { seq, epoch });
}

function busPorts(iii: Iii, log: Logger): FanoutPorts {
  // Pushes outlive the call that caused them, so they must not run in its context: its trace, its parent, its mark.
  const outside = AsyncLocalStorage.snapshot();
  const options = { timeout_ms: PUSH_TIMEOUT_MS };
  return {
    hear() {
      const bound = [
        iii.registerTrigger({ type: "stream", function_id: onAgentEvent.id, config: { stream_name: AGENT_EVENTS } }),
        iii.registerTrigger({ type: "state", function_id: onSessionCreated.id, config: { scope: "session_index" } }),
      ];
      return () => {
        for (const trigger of bound) trigger.unregister();
      };
    },
    read: (session_id, since, epoch) =>
      iii.trigger(streamRead, {
        stream_name: AGENT_EVENTS,
        group_id: session_id,
        ...(since === undefined ? {} : { since }),
        ...(epoch === undefined ? {} : { epoch }),
      }),
    pushEvent: (browser_id, push) => iii.trigger(sessionPushId(browser_id), push, options),
    pushSessions: (browser_id, push) => iii.trigger(sessionsChangedId(browser_id), push, options),
    detach(work) {
      // A turn of the event loop later: the answer of the call that runs now goes out first.
      outside(
        () => void setImmediate(() => void work().catch((cause) => log.error({ error: String(cause) }, "pushing to a browser failed"))),
      );
    },
  };
}
