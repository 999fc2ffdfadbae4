// The gate on a bus: real revisions, a real store, and callers that are not allowed.
import { argsSha256 } from "@iii/contracts/args-hash";
import { stateGet, stateSet } from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";
import { APPROVALS_SCOPE, approvalKey, listPending, resolveApproval } from "../src/contract.ts";
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

test("a decision is stored with who made it, and the second one gets the first", async () => {
  await using bus = await testBus([worker]);
  await park(bus);
  expect(await bus.call(listPending, { session_id: "s" })).toMatchObject([{ function_call_id: "c", args: { command: "ls" } }]);
  const ask = { session_id: "s", function_call_id: "c", args_sha256: argsSha256(call) };
  expect(await bus.call(resolveApproval, { ...ask, decision: "allow", by: "ann" })).toEqual({ ok: true });
  expect(await bus.call(stateGet, { scope: APPROVALS_SCOPE, key })).toMatchObject({
    status: "decided",
    decision: "allow",
    reason: null,
    by: "ann",
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
test("an agent cannot decide, but may look", async () => {
  await using bus = await testBus([worker]);
  await park(bus);
  const ask = { session_id: "s", function_call_id: "c", decision: "allow" };
  await expect(bus.call("approval::resolve", ask, { origin: "agent" })).rejects.toMatchObject({ code: "FORBIDDEN" });
  expect(await bus.call("approval::list_pending", {}, { origin: "agent" })).toHaveLength(1);
});
