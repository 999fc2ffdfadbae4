// Property: whatever JSON a tool answers, a model asks with or a person writes, the turn ends `stopped`, the transcript says what was
// said, and the next turn works. On the real engine core, with the orchestrator, the session worker and a scripted provider.
import type { AgentMessage } from "@iii/contracts";
import { CONTENT_DEPTH } from "@iii/contracts/storable";
import { wellFormed } from "@iii/contracts/well-formed";
import { testBus } from "@iii/engine/testing";
import { defineFunction, defineWorker, isTooDeep } from "@iii/sdk";
import { APPROVALS_SCOPE, type ApprovalRow } from "@iii/worker-approval-gate/contract";
import { sessionMessages } from "@iii/worker-session/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { worker as session } from "../../session/src/register.ts";
import { orchestrator } from "../src/register.ts";
import { call, ended, gate, nested, results, start, text, toyProvider, until, user } from "./rig.ts";

const key = fc.oneof(
  fc.constantFrom(
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "",
    "content",
    "is_error",
    "details",
    "error",
    "type",
    "payload",
    "function",
  ),
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom("\ud99c", "a\udc00b", "\u0000", "\u202e"),
);
const leaf = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom("\ud800", "x\udfff", "🔥".slice(0, 1), "\u0000", "</script>"),
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie("tree")), { maxLength: 4 }).map(asObject),
  ),
}));
/** Built as JSON.parse would: an odd key is a key. */
function asObject(entries: readonly (readonly [string, unknown])[]): unknown {
  return JSON.parse(`{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}`);
}
const deep = fc.constantFrom(10, 300, 470, 474, 476, 478, 480, 482, 500, 510, 600, 3_000).map(nested);
const large = fc
  .constantFrom(1_000, 250_000, 300_000, 1_500_000)
  .chain((size) => fc.constantFrom("x", "é", "\u0000", "🔥").map((one) => one.repeat(size / one.length)));
const value = fc.oneof({ weight: 8, arbitrary: tree }, { weight: 3, arbitrary: deep }, { weight: 2, arbitrary: large });

const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** A person who allows whatever is asked, as the gate would write it. */
async function allowAll(bus: Awaited<ReturnType<typeof testBus>>): Promise<void> {
  const rows = await bus.call<{ key: string; value: ApprovalRow; rev: number }[]>("state::list", {
    scope: APPROVALS_SCOPE,
    with_keys: true,
  });
  for (const { key, value: row, rev } of rows) {
    if (row.status !== "pending") continue;
    const decided = { ...row, status: "decided", decision: "allow", reason: null, by: "robot", decided_at: 7 };
    const at = { scope: APPROVALS_SCOPE, key };
    await bus.call("state::transact", { checks: [{ ...at, rev }], writes: [{ ...at, value: decided }] });
  }
}

interface Said {
  /** Whether a person is asked about the call. */
  readonly asks: boolean;
  readonly answer: unknown;
  readonly args: unknown;
  readonly wrote: unknown;
}

function scene({ answer, args, asks }: Said) {
  const seen: unknown[] = [];
  const tool = defineWorker({
    name: "any-tool",
    config: z.object({}),
    register(on) {
      on(defineFunction({ id: "t::any", about: "Answers anything.", input: z.unknown(), output: z.unknown() }), (input) => {
        seen.push(input);
        return answer;
      });
    },
  });
  const provider = toyProvider((messages, nth) =>
    nth === 1 && results(messages).length === 0 ? [call("t::any", args, "c1")] : [text("ok")],
  );
  return {
    seen,
    workers: [
      session,
      gate(() => (asks ? "needs_approval" : "allow")).worker,
      tool,
      provider.worker,
      { worker: orchestrator(), config: { startup_grace_ms: 0 } },
    ],
  };
}

async function holds(said: Said): Promise<void> {
  const { seen, workers } = scene(said);
  await using bus = await testBus(workers);
  const wrote: AgentMessage = { role: "custom", custom_type: "any", content: said.wrote, timestamp: 1 };
  const first = await start(bus, "s1", [user("go"), wrote]).catch((thrown: unknown) => thrown);
  if (first instanceof Error) {
    expect(first).toMatchObject({ code: expect.stringMatching(/^payload_too_(deep|large)$/) });
    expect(isTooDeep(wrote, CONTENT_DEPTH - 1) || JSON.stringify(wrote).length > 1_000_000).toBe(true);
    await start(bus, "s1", [user("go")]);
  }
  await until(bus, "s1", (view) => ended(view) || view.state === "function_awaiting_approval");
  await allowAll(bus);
  expect((await until(bus, "s1", ended)).state).toBe("stopped");
  await start(bus, "s1", [user("and on")], { message_id: "on" });
  expect(await until(bus, "s1", (view) => ended(view) && view.message_id === "on")).toMatchObject({ state: "stopped", stop_reason: "end" });
  const { messages, unreadable } = await bus.call(sessionMessages, { session_id: "s1" });
  const told = messages.map((entry) => entry.message);
  expect(unreadable).toBeUndefined();
  expect(told.filter((message) => message.role === "user")).toHaveLength(2);
  if (!(first instanceof Error)) expect(sameJson(told[1], wellFormed(wrote))).toBe(true);
  // What the transcript says of the call is what happened to it.
  const asked = told.flatMap((message) =>
    message.role === "assistant" ? message.content.filter((part) => part.type === "function_call") : [],
  );
  const given = results(told);
  expect(given.map((result) => result.function_call_id)).toEqual(asked.map((part) => part.id));
  if (seen.length === 0) expect(given.every((result) => result.is_error)).toBe(true);
  if (seen.length === 1) expect(JSON.stringify(given)).not.toMatch(/not run|not finished|interrupted/);
  expect(await bus.call("state::list", { scope: "active_turns" })).toEqual([]);
}

test("P2.2 any JSON as result, arguments and message: the turn stops, the transcript is true, the next turn works", async () => {
  await fc.assert(
    fc.asyncProperty(value, value, value, fc.boolean(), (answer, args, wrote, asks) => holds({ answer, args, wrote, asks })),
    { numRuns: Number(process.env["III_RUNS"] ?? 40), interruptAfterTimeLimit: 90_000 },
  );
}, 120_000);
