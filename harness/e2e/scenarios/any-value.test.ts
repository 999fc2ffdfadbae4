// Whatever JSON a tool returns, a model writes as arguments or a person sends: it costs one call or one message, never the session.
import { type BusError, type ChannelRef, type Client, connect } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import fc from "fast-check";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { type Stack, startStack } from "../support/stack.ts";
import { ended, post, transcript } from "../support/turns.ts";

const ODD = ["__proto__", "constructor", "prototype", "", "\u0000", "\ud800", "a\udc00b", "🔥", "isError", "content", "_caller_worker_id"];
const odd = fc.oneof(fc.constantFrom(...ODD), fc.string());
const leaf = fc.oneof(odd, fc.constant(null), fc.boolean(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.maxSafeInteger());
const { node } = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 5 },
    leaf,
    fc.array(tie("node"), { maxLength: 4 }),
    fc.array(fc.tuple(odd, tie("node")), { maxLength: 4 }).map((pairs) => Object.fromEntries(pairs)),
  ),
}));
const nested = fc.tuple(fc.integer({ min: 400, max: 1_000 }), leaf).map(([levels, inner]) => {
  let value: unknown = inner;
  for (let n = 0; n < levels; n += 1) value = n % 2 === 0 ? [value] : { k: value };
  return value;
});
const large = fc.integer({ min: 1, max: 4_000_000 }).map((length) => 'ä\\"\n'.repeat(length / 4));
const anything = fc.oneof({ weight: 6, arbitrary: node }, { weight: 2, arbitrary: nested }, { weight: 1, arbitrary: large });

let stack: Stack;
let peer: Client;
let asked: { args: unknown; result: unknown } = { args: {}, result: null };

/** A model that calls the tool once per turn, and a tool that returns what it is told to. */
function serve(): void {
  peer = connect({ dialer: wsDialer(stack.url), name: "anything" });
  peer.registerFunction("any::tool", () => asked.result);
  peer.registerFunction("provider::any::stream", async (input) => {
    const { writer_ref, messages } = input as { writer_ref: ChannelRef; messages: { role: string }[] };
    const call = { type: "function_call", id: "c1", function_id: "agent_trigger" };
    const first = messages.at(-1)?.role === "user";
    const content = first
      ? [{ ...call, arguments: { function: "any::tool", payload: { value: asked.args } } }]
      : [{ type: "text", text: "fine" }];
    const about = { role: "assistant", model: "m", provider: "any", timestamp: 1 };
    const writer = peer.openWriter(writer_ref);
    await writer.send(JSON.stringify({ type: "done", message: { ...about, content, stop_reason: first ? "function_call" : "end" } }));
    await writer.close();
    return { ok: true };
  });
}

beforeAll(async () => {
  stack = await startStack({ permissions: "version: 1\nrules:\n  - any::tool\n" });
  serve();
  await peer.trigger("engine::functions::list", {});
});
afterAll(async () => {
  await peer?.close({ drain_ms: 0 });
  await stack?.[Symbol.asyncDispose]();
});

let sessions = 0;
const ask = (session_id: string) => post(stack, session_id, "go", { provider: "any", model: "m" });

/** The turn has stopped, and each of the session's calls has one result. */
async function settled(session_id: string): Promise<string | undefined> {
  const { state, stop_reason } = await ended(stack, session_id);
  const { calls, results, messages } = await transcript(stack, session_id);
  expect([state, results.map((one) => one.function_call_id)]).toEqual(["stopped", calls.map((call) => call.id)]);
  expect(messages.at(-1)).toMatchObject({ role: "assistant", stop_reason });
  return stop_reason;
}

test("P2.2 any value as arguments, as a result and as a message: the turn stops, the transcript is true, the next turn works", async () => {
  const property = fc.asyncProperty(anything, anything, anything, async (args, result, message) => {
    sessions += 1;
    const session_id = `any-${sessions}`;
    asked = { args, result };
    await ask(session_id);
    await settled(session_id);
    asked = { args: {}, result: null };
    const payload = { provider: "any", model: "m", messages: [message] };
    const refused = await stack.trigger("harness::trigger", { session_id, payload }).then(
      () => undefined,
      (error: BusError) => error,
    );
    if (refused === undefined) await settled(session_id);
    else expect(refused.code).not.toMatch(/internal|timeout/i);
    await ask(session_id);
    expect(await settled(session_id)).toBe("end");
  });
  await fc.assert(property, { numRuns: inject("values"), endOnFailure: true });
}, 240_000);
