// Parked calls: what a person decides happens once, to exactly the arguments that were shown.
import { APPROVALS_SCOPE, type ApprovalRow, approvalKey } from "@iii/worker-approval-gate/contract";
import { expect, test } from "vitest";
import { runAbort } from "../src/contract.ts";
import { call, ended, events, gate, results, stack, start, text, tools, toyProvider, transcript, until, user } from "./rig.ts";

type Bus = Awaited<ReturnType<typeof stack>>;

async function row(bus: Bus, sid: string, cid: string): Promise<ApprovalRow | undefined> {
  const { value } = await bus.call<{ value: ApprovalRow | null }>("state::get_with_rev", {
    scope: APPROVALS_SCOPE,
    key: approvalKey(sid, cid),
  });
  return value ?? undefined;
}

/** Decides as the gate does: one conditional write. False: there was nothing to decide. */
async function decide(
  bus: Bus,
  sid: string,
  cid: string,
  decision: "allow" | "deny" | "aborted",
  change: Partial<ApprovalRow> = {},
): Promise<boolean> {
  const at = { scope: APPROVALS_SCOPE, key: approvalKey(sid, cid) };
  const { value, rev } = await bus.call<{ value: ApprovalRow | null; rev: number }>("state::get_with_rev", at);
  if (value?.status !== "pending") return false;
  const decided = {
    ...value,
    status: "decided",
    decision,
    reason: decision === "deny" ? "not today" : null,
    by: "anna",
    decided_at: 7,
    ...change,
  };
  const done = await bus.call<{ ok: boolean }>("state::transact", { checks: [{ ...at, rev }], writes: [{ ...at, value: decided }] });
  return done.ok;
}

const parked =
  (count = 1) =>
  (view: { state: string; awaiting_approval?: unknown[] | undefined }) =>
    view.state === "function_awaiting_approval" && view.awaiting_approval?.length === count;

function asks(batch: ReturnType<typeof call>[]) {
  const provider = toyProvider((messages) => (results(messages).length < batch.length ? batch : [text("done")]));
  const toy = tools();
  const policy = gate((id) => (id === "t::pure" ? "allow" : "needs_approval"));
  return { provider, toy, policy, workers: [provider.worker, policy.worker, toy.worker] };
}

test("case 1: an approved call runs once, with one result, also when its step is delivered again", async () => {
  const { provider, toy, workers } = asks([call("t::once", { a: 1 }, "c1")]);
  await using bus = await stack(workers);
  await start(bus, "s1", [user("go")]);
  const view = await until(bus, "s1", parked());
  expect(view.awaiting_approval?.[0]).toMatchObject({ function_call_id: "c1", function_id: "t::once", args: { a: 1 } });
  expect(toy.ledger).toHaveLength(0);
  expect(await row(bus, "s1", "c1")).toMatchObject({ status: "pending" });
  await decide(bus, "s1", "c1", "allow");
  for (let again = 0; again < 3; again += 1) {
    await bus.call("turn::step", { session_id: "s1" }, { action: { type: "enqueue", queue: "turn-step" } });
  }
  await until(bus, "s1", ended);
  expect(toy.ledger).toHaveLength(1);
  expect(results(await transcript(bus, "s1"))).toHaveLength(1);
  expect(provider.seen.at(-1)?.filter((message) => message.role === "function_result")).toHaveLength(1);
  expect(await row(bus, "s1", "c1")).toBeUndefined();
  expect((await events(bus, "s1")).filter((event) => event.type === "function_execution_start")).toHaveLength(1);
});

test("a denial reaches the model as the user's, and nothing runs", async () => {
  const { toy, workers } = asks([call("t::once", {}, "c1")]);
  await using bus = await stack(workers);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", parked());
  await decide(bus, "s1", "c1", "deny");
  await until(bus, "s1", ended);
  expect(toy.ledger).toHaveLength(0);
  expect(results(await transcript(bus, "s1"))[0]).toMatchObject({
    is_error: true,
    content: [{ type: "text", text: "Permission denied by user: not today" }],
    details: { denied_by: "user", reason: "not today" },
  });
});

test("U24 a denial gives a reason only when the person gave one", async () => {
  const { workers } = asks([call("t::once", {}, "c1")]);
  await using bus = await stack(workers);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", parked());
  await decide(bus, "s1", "c1", "deny", { reason: null });
  await until(bus, "s1", ended);
  const [result] = results(await transcript(bus, "s1"));
  expect(result?.content).toEqual([text("Permission denied by user")]);
  expect(result?.details).toMatchObject({ denied_by: "user" });
  expect(result?.details).not.toHaveProperty("reason");
});

test("cases 5, 7, 10, 11: of several held calls each runs by its own decision, and the model is asked when all are settled", async () => {
  const { provider, toy, workers } = asks([
    call("t::once", { n: 1 }, "c1"),
    call("t::pure", { n: 2 }, "c2"),
    call("t::again", { n: 3 }, "c3"),
    call("t::once", { n: 4 }, "c4"),
  ]);
  await using bus = await stack(workers);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", parked(3));
  expect(toy.ledger.map((entry) => entry.function_id)).toEqual(["t::pure"]);
  await decide(bus, "s1", "c3", "allow");
  await until(bus, "s1", parked(2));
  expect(toy.ledger.map((entry) => entry.function_id)).toEqual(["t::pure", "t::again"]);
  expect(provider.seen).toHaveLength(1);
  await bus.crash();
  await decide(bus, "s1", "c4", "deny");
  await until(bus, "s1", parked(1));
  expect(provider.seen).toHaveLength(1);
  await decide(bus, "s1", "c1", "allow");
  await until(bus, "s1", ended);
  expect(provider.seen).toHaveLength(2);
  const last = provider.seen[1]?.filter((message) => message.role === "function_result") ?? [];
  expect(last.map((message) => message.role === "function_result" && message.function_call_id)).toEqual(["c1", "c2", "c3", "c4"]);
  expect(toy.ledger.filter((entry) => entry.function_id === "t::once")).toHaveLength(1);
});

test("arguments that were changed in the store after parking are refused and never dispatched", async () => {
  for (const where of ["row", "record"] as const) {
    const { toy, workers } = asks([call("t::once", { amount: 82 }, "c1")]);
    await using bus = await stack(workers);
    await start(bus, "s1", [user("go")]);
    await until(bus, "s1", parked());
    if (where === "record") {
      const at = { scope: "session", key: "s1/turn_state" };
      const record = await bus.call<{ calls: { args: unknown }[] }>("state::get", at);
      await bus.call("state::set", {
        ...at,
        value: { ...record, calls: record.calls.map((held) => ({ ...held, args: { amount: 820 } })) },
      });
    }
    await decide(bus, "s1", "c1", "allow", where === "row" ? { args: { amount: 820 } } : {});
    await until(bus, "s1", ended);
    expect(toy.ledger, where).toHaveLength(0);
    expect(results(await transcript(bus, "s1"))[0]?.details, where).toMatchObject({ error: "args_changed" });
  }
});

test("a request that nobody decides expires, also while the process was away", async () => {
  const { toy, workers } = asks([call("t::once", {}, "c1")]);
  await using bus = await stack(workers, { approval_timeout_ms: 60_000 });
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", parked());
  await bus.crash();
  await until(bus, "s1", ended);
  expect(toy.ledger).toHaveLength(0);
  expect(results(await transcript(bus, "s1"))[0]?.details).toMatchObject({ denied_by: "expired" });
  expect(await row(bus, "s1", "c1")).toBeUndefined();
});

test("with approval_timeout_ms 0 a parked call waits for ever", async () => {
  const { workers } = asks([call("t::once", {}, "c1")]);
  await using bus = await stack(workers, { approval_timeout_ms: 0 });
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", parked());
  await bus.clock.advance(31 * 60_000);
  expect(await row(bus, "s1", "c1")).toMatchObject({ status: "pending", expires_at: null });
});

test("a rule that denies by the time of release wins over the approval", async () => {
  let rule: "needs_approval" | "deny" = "needs_approval";
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::once", {}, "c1")] : [text("ok")]));
  const toy = tools();
  await using bus = await stack([provider.worker, gate(() => rule).worker, toy.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", parked());
  rule = "deny";
  await decide(bus, "s1", "c1", "allow");
  await until(bus, "s1", ended);
  expect(toy.ledger).toHaveLength(0);
  expect(results(await transcript(bus, "s1"))[0]?.details).toMatchObject({ denied_by: "permissions" });
});

test("abort while parked answers the call, removes its row and ends the turn", async () => {
  const { toy, workers } = asks([call("t::once", {}, "c1")]);
  await using bus = await stack(workers);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", parked());
  await bus.call(runAbort, { session_id: "s1", reason: "enough" });
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "aborted" });
  expect(toy.ledger).toHaveLength(0);
  expect(await row(bus, "s1", "c1")).toBeUndefined();
  expect(await decide(bus, "s1", "c1", "allow")).toBe(false);
  expect(results(await transcript(bus, "s1"))).toHaveLength(1);
});

test("a person's 'aborted' ends the turn", async () => {
  const { workers } = asks([call("t::once", {}, "c1")]);
  await using bus = await stack(workers);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", parked());
  await decide(bus, "s1", "c1", "aborted");
  expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped", stop_reason: "terminated" });
});

test("case 49: broken arguments go back to the model with the schema, and nobody is asked", async () => {
  const bad = { type: "function_call" as const, id: "c1", function_id: "agent_trigger", arguments: null, arguments_text: '{"path":"/a' };
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [bad] : [text("ok")]));
  const policy = gate(() => "needs_approval");
  await using bus = await stack([provider.worker, policy.worker, tools().worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", ended);
  expect(policy.asked()).toBe(0);
  expect(results(await transcript(bus, "s1"))[0]).toMatchObject({ is_error: true, details: { error: "invalid_arguments" } });
});

test("the call carries the agent's mark: a human-only function refuses it", async () => {
  const provider = toyProvider((messages) =>
    results(messages).length === 0 ? [call("run::abort", { session_id: "s1" }, "c1")] : [text("ok")],
  );
  await using bus = await stack([provider.worker, gate().worker]);
  await start(bus, "s1", [user("go")]);
  expect(await until(bus, "s1", ended)).toMatchObject({ stop_reason: "end" });
  expect(results(await transcript(bus, "s1"))[0]?.details).toMatchObject({ status: "denied", denied_by: "permissions" });
});
