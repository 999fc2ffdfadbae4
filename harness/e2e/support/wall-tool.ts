// A tool that tries, on an agent's behalf, to do what only people may: at once, deeper, later, and through everything that calls back.
// What a call that nobody waits for came to is kept as state, in a scope of its own.
import { AsyncLocalStorage } from "node:async_hooks";
import { type BusError, defineFunction, defineWorker, type Iii } from "@iii/sdk";
import { run } from "@iii/sdk/run";
import { z } from "zod";

const Target = z.object({ function_id: z.string(), payload: z.unknown() });
const Outcome = z.object({ code: z.string(), message: z.string() });
type Outcome = z.infer<typeof Outcome>;

/** A state event, a stream event, a published value or a queue message: whatever it is, the target stands somewhere inside. */
const Caused = z.looseObject({});
const Attempt = z.object({ name: z.string(), ...Target.shape });

const define = (id: string, input: z.ZodType, about: string) => defineFunction({ id, about, input, output: Outcome });
const callIt = define("wall::call", Target.extend({ action: z.unknown().optional() }), "Call the target.");
const deeper = define("wall::deeper", Target.extend({ depth: z.int() }), "Call the target some calls deeper.");
const apart = define("wall::apart", Target, "Call the target from outside of this call.");
const bind = define("wall::bind", z.object({ type: z.string(), function_id: z.string(), config: z.unknown() }), "Bind a trigger.");
const later = define("wall::later", Caused, "Call the target of the event, and keep what came of it.");

async function attempt(work: () => Promise<unknown>): Promise<Outcome> {
  try {
    return { code: "none", message: JSON.stringify((await work()) ?? null) };
  } catch (thrown) {
    const { code, message } = thrown as BusError;
    return { code, message };
  }
}

function attemptIn(event: unknown): z.infer<typeof Attempt> | undefined {
  const found = Attempt.safeParse(event);
  if (found.success) return found.data;
  if (typeof event !== "object" || event === null) return undefined;
  return Object.values(event)
    .map(attemptIn)
    .find((one) => one !== undefined);
}

function bindOwn(iii: Iii): void {
  iii.registerTrigger({ type: "state", function_id: later.id, config: { scope: "wall-events" } });
  iii.registerTrigger({ type: "state", function_id: later.id, config: { scope: "wall-durable", durable: "wall" } });
  iii.registerTrigger({ type: "stream", function_id: later.id, config: { stream_name: "wall-stream" } });
  iii.registerTrigger({ type: "subscribe", function_id: later.id, config: { topic: "wall-topic" } });
  iii.registerTrigger({ type: "durable:subscriber", function_id: later.id, config: { topic: "wall-durable-topic" } });
}

const worker = defineWorker({
  name: "wall",
  config: z.object({}),
  register(on, { iii }) {
    const outside = AsyncLocalStorage.snapshot();
    const act = z.object({ type: z.literal("enqueue"), queue: z.string() }).optional();
    on(callIt, (input) => {
      const { function_id, payload, action } = callIt.input.parse(input) as z.infer<typeof Target> & { action?: unknown };
      const wanted = act.parse(action);
      return attempt(() => iii.trigger(function_id, payload, wanted === undefined ? {} : { action: wanted }));
    });
    on(deeper, (input) => {
      const { depth, ...target } = input as z.infer<typeof Target> & { depth: number };
      if (depth === 0) return attempt(() => iii.trigger(target.function_id, target.payload));
      return iii.trigger<Outcome>(deeper.id, { ...target, depth: depth - 1 });
    });
    on(apart, (input) => {
      const { function_id, payload } = input as z.infer<typeof Target>;
      return outside(() => attempt(() => iii.trigger(function_id, payload)));
    });
    on(bind, async (input) => {
      const spec = input as { type: string; function_id: string; config: unknown };
      iii.registerTrigger(spec);
      await iii.trigger("engine::functions::list", {});
      return { code: "none", message: "asked" };
    });
    on(later, async (event) => {
      const wanted = attemptIn(event);
      if (wanted === undefined) return { code: "none", message: "nothing to do" };
      const outcome = await attempt(() => iii.trigger(wanted.function_id, wanted.payload));
      await iii.trigger("state::set", { scope: "wall-outcomes", key: wanted.name, value: outcome });
      return outcome;
    });
    return { ready: () => bindOwn(iii) };
  },
});

await run(worker);
