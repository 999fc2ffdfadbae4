// The gate on a bus: real revisions, a real store, and callers that are not allowed.
import { argsSha256 } from "@iii/contracts/args-hash";
import { stateDelete, stateGet, stateList, stateSet } from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";
import { APPROVALS_SCOPE, approvalKey, DECIDED_SCOPE, listPending, resolveApproval } from "../src/contract.ts";
import { worker } from "../src/register.ts";

type Bus = Awaited<ReturnType<typeof testBus>>;
const call = { session_id: "s", function_call_id: "c", function_id: "shell::exec", args: { command: "ls" } };
const key = approvalKey("s", "c");

async function park(bus: Bus, changes: object = {}) {
  const value = {
    ...call,
    status: "pending",
    args_sha256: argsSha256(call),
    requested_at: bus.clock.now(),
    expires_at: bus.clock.now() + 60_000,
    ...changes,
  };
  await bus.call(stateSet, { scope: APPROVALS_SCOPE, key, value });
  return value;
}

test("K7.6 a decision is stored with who made it, and the second one gets the first", async () => {
  await using bus = await testBus([worker]);
  await park(bus);
  expect(await bus.call(listPending, { session_id: "s" })).toMatchObject([{ function_call_id: "c", args: { command: "ls" } }]);
  const ask = { session_id: "s", function_call_id: "c", args_sha256: argsSha256(call) };
  expect(await bus.call(resolveApproval, { ...ask, decision: "allow", by: "ann" })).toEqual({ ok: true });
  expect(await bus.call(stateGet, { scope: APPROVALS_SCOPE, key })).toMatchObject({
    status: "decided",
    decision: "allow",
    reason: null,
    by: "test (claims: ann)",
  });
  expect(await bus.call(resolveApproval, { ...ask, decision: "deny" })).toMatchObject({
    error: "already_decided",
    first: { decision: "allow" },
  });
  expect(await bus.call(listPending, {})).toEqual([]);
});
test("of many decisions at once exactly one is taken", async () => {
  await using bus = await testBus([worker]);
  await park(bus);
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) =>
      bus.call(resolveApproval, { session_id: "s", function_call_id: "c", decision: i % 2 ? "allow" : "deny" }),
    ),
  );
  expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
  expect(answers.filter((answer) => !answer.ok && answer.error === "already_decided")).toHaveLength(7);
});
test("arguments changed in the store, expiry and bad input are answers", async () => {
  await using bus = await testBus([worker]);
  const ask = { session_id: "s", function_call_id: "c", decision: "allow" } as const;
  expect(await bus.call(resolveApproval, ask)).toMatchObject({ ok: false, error: "not_pending" });
  await park(bus, { args: { command: "rm" } });
  expect(await bus.call(resolveApproval, ask)).toMatchObject({ ok: false, error: "args_changed" });
  await park(bus);
  await bus.clock.advance(60_000);
  expect(await bus.call(resolveApproval, ask)).toMatchObject({ ok: false, error: "not_pending" });
  expect(await bus.call("approval::resolve", { session_id: "a/b", decision: "allow" })).toMatchObject({
    ok: false,
    error: "invalid_payload",
  });
});
test("an agent cannot decide, but may look at its own session", async () => {
  await using bus = await testBus([worker]);
  await park(bus);
  const ask = { session_id: "s", function_call_id: "c", decision: "allow" };
  await expect(bus.call("approval::resolve", ask, { origin: "agent" })).rejects.toMatchObject({ code: "FORBIDDEN" });
  const own = { origin: "agent", session_id: "s" } as const;
  expect(await bus.call("approval::list_pending", { session_id: "s" }, own)).toHaveLength(1);
  for (const input of [{}, { session_id: "other" }])
    await expect(bus.call("approval::list_pending", input, own)).rejects.toMatchObject({ code: "FORBIDDEN" });
  await expect(bus.call("approval::list_pending", { session_id: "s" }, { origin: "agent" })).rejects.toMatchObject({ code: "FORBIDDEN" });
});

const row = (session_id: string, function_call_id: string, clock: { now(): number }) => {
  const held = { ...call, session_id, function_call_id };
  return { ...held, status: "pending", args_sha256: argsSha256(held), requested_at: clock.now(), expires_at: null };
};
const put = (bus: Bus, session_id: string, function_call_id: string) =>
  bus.call(stateSet, {
    scope: APPROVALS_SCOPE,
    key: approvalKey(session_id, function_call_id),
    value: row(session_id, function_call_id, bus.clock),
  });

test("K14.4 after a restart of the gate, and of everything, a second decision still gets the first", async () => {
  await using bus = await testBus([worker]);
  await park(bus);
  const ask = { session_id: "s", function_call_id: "c" } as const;
  expect(await bus.call(resolveApproval, { ...ask, decision: "deny", reason: "no", by: "ann" })).toEqual({ ok: true });
  await bus.call(stateDelete, { scope: APPROVALS_SCOPE, key });
  await bus.crash();
  expect(await bus.call(resolveApproval, { ...ask, decision: "allow" })).toMatchObject({
    error: "already_decided",
    first: { decision: "deny", reason: "no", by: "test (claims: ann)" },
  });
  expect(await bus.call(resolveApproval, { ...ask, function_call_id: "never", decision: "allow" })).toMatchObject({ error: "not_pending" });
});
test("K14.4 decisions are remembered in bounds: the latest are kept", async () => {
  await using bus = await testBus([worker]);
  const value = { decision: "allow", reason: null, by: "ann", decided_at: 1 };
  for (let i = 0; i < 1_200; i += 1) await bus.call(stateSet, { scope: DECIDED_SCOPE, key: `old/${i}`, value });
  await put(bus, "s", "c");
  expect(await bus.call(resolveApproval, { session_id: "s", function_call_id: "c", decision: "allow" })).toEqual({ ok: true });
  const kept = await bus.call(stateList, { scope: DECIDED_SCOPE, with_keys: true });
  expect(kept).toHaveLength(1_000);
  expect(kept).toContainEqual(expect.objectContaining({ key: "s/c" }));
  expect(kept).not.toContainEqual(expect.objectContaining({ key: "old/200" }));
});
test.each([
  ["a text", "x"],
  ["an empty object", {}],
  ["another version", { ...call, status: "parked", version: 2 }],
  ["a date that is none", { ...call, status: "pending", args_sha256: "x", requested_at: "now", expires_at: null }],
  ["a list", [1]],
])("K2.7 a row that is %s is left out, and the list goes on", async (_title, value) => {
  await using bus = await testBus([worker]);
  await bus.call(stateSet, { scope: APPROVALS_SCOPE, key: "s/bad", value });
  await put(bus, "s", "good");
  expect(await bus.call(listPending, {})).toMatchObject([{ function_call_id: "good" }]);
  const ask = { session_id: "s", decision: "allow" } as const;
  expect(await bus.call(resolveApproval, { ...ask, function_call_id: "bad" })).toMatchObject({
    error: "resume_failed",
    message: expect.stringContaining("'s/bad'"),
  });
  expect(await bus.call(resolveApproval, { ...ask, function_call_id: "good" })).toEqual({ ok: true });
});
test.each([-3, 2])("K8.1, K8.2 a parked call stays in the list when the clock steps by %i hours before anybody looked", async (hours) => {
  await using bus = await testBus([worker]);
  await park(bus);
  await bus.settle();
  bus.clock.step(hours * 3_600_000);
  expect(await bus.call(listPending, {})).toMatchObject([{ remaining_ms: 60_000 }]);
  await bus.clock.advance(60_000);
  expect(await bus.call(listPending, {})).toEqual([]);
});
