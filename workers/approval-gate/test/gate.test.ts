// The decision table, and the gate's races over rows held in memory by the same compare-and-set rule as the store's.
import { argsSha256 } from "@iii/contracts/args-hash";
import { BusError, silentLogger } from "@iii/sdk";
import { ManualClock } from "@iii/sdk/testing";
import { describe, expect, test } from "vitest";
import { ApprovalRow, DecisionRecord } from "../src/contract.ts";
import { Gate } from "../src/gate.ts";
import { resolveRow } from "../src/resolve.ts";
import type { Rows } from "../src/rows.ts";

const call = { session_id: "s", function_call_id: "c", function_id: "shell::exec", args: { command: "ls", n: [1, { b: 1, a: 2 }] } };
const pending = ApprovalRow.parse({ ...call, status: "pending", args_sha256: argsSha256(call), requested_at: 1, expires_at: 1_000 });
const a = { kind: "operator", name: "ann" } as const;
const b = { kind: "entry", name: "bob" } as const;
const decided = ApprovalRow.parse({ ...pending, status: "decided", decision: "deny", reason: "no", by: "ann", decided_at: 5 });
const ask = { session_id: "s", function_call_id: "c", decision: "allow" } as const;

describe("a decision", () => {
  const facts = { now: 500, expired: false, hash: argsSha256(call), by: "bob" };
  test.each([
    ["for nothing", undefined, ask, facts, "not_pending"],
    ["for a decided call", decided, ask, facts, "already_decided"],
    ["after its time", pending, ask, { ...facts, expired: true }, "not_pending"],
    ["about other arguments", pending, { ...ask, args_sha256: "0".repeat(64) }, facts, "args_changed"],
    ["after the stored arguments changed", pending, ask, { ...facts, hash: "0".repeat(64) }, "args_changed"],
  ])("%s is refused", (_title, row, request, given, error) => {
    expect(resolveRow(row, request, given)).toMatchObject({ kind: "answer", answer: { ok: false, error } });
  });
  test.each(["allow", "deny", "aborted"] as const)("%s is recorded with who and when", (decision) => {
    expect(resolveRow(pending, { ...ask, decision, reason: "so" }, facts)).toEqual({
      kind: "write",
      row: { ...pending, status: "decided", decision, reason: "so", by: "bob", decided_at: 500 },
    });
  });
  test("a refusal for a decided call carries the first decision", () => {
    expect(resolveRow(decided, ask, facts)).toMatchObject({
      answer: { first: { decision: "deny", reason: "no", by: "ann", decided_at: 5 } },
    });
  });
});

test("the arguments hash ignores key order and sees every value", () => {
  const reordered = { ...call, args: { n: [1, { a: 2, b: 1 }], command: "ls" } };
  expect(argsSha256(reordered)).toBe(argsSha256(call));
  expect(argsSha256({ ...call, args: { ...call.args, command: "ls " } })).not.toBe(argsSha256(call));
  expect(argsSha256({ ...call, session_id: "t" })).not.toBe(argsSha256(call));
});

function memoryRows(rows: ApprovalRow[]): Rows & { fail?: BusError; consume(): void } {
  let current = rows.map((row, i) => ({ row, rev: i + 1 }));
  let next = rows.length + 1;
  const kept = new Map<string, DecisionRecord>();
  return {
    async read(sid, cid) {
      if (this.fail) throw this.fail;
      const found = current.find(({ row }) => row.session_id === sid && row.function_call_id === cid);
      return found ?? { row: undefined, rev: 0 };
    },
    async replace(row, rev) {
      const found = current.find((entry) => entry.rev === rev);
      if (found === undefined) return false;
      found.row = row;
      found.rev = next++;
      kept.set(`${row.session_id}/${row.function_call_id}`, DecisionRecord.parse(row));
      return true;
    },
    async decided(sid, cid) {
      return kept.get(`${sid}/${cid}`);
    },
    async list(sid) {
      return current.map(({ row }) => row).filter((row) => sid === undefined || row.session_id === sid);
    },
    consume() {
      current = [];
    },
  };
}

describe("the gate", () => {
  function setup(rows: ApprovalRow[] = [pending]) {
    const clock = new ManualClock(500);
    const memory = memoryRows(rows);
    return { clock, memory, gate: new Gate({ rows: memory, clock, log: silentLogger }) };
  }
  test("of two decisions at once exactly one stands, and the other gets it", async () => {
    const { gate } = setup();
    const answers = await Promise.all([gate.resolve(ask, a), gate.resolve({ ...ask, decision: "deny" }, b)]);
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
    expect(answers.find((answer) => !answer.ok)).toMatchObject({ error: "already_decided" });
  });
  test("a second decision after the first was consumed still gets the first", async () => {
    const { gate, memory } = setup();
    await gate.resolve(ask, a);
    memory.consume();
    expect(await gate.resolve({ ...ask, decision: "deny" }, b)).toMatchObject({
      error: "already_decided",
      first: { decision: "allow", by: "ann" },
    });
  });
  test.each([
    ["a session id with a slash", { ...ask, session_id: "s/x" }],
    ["a call id that is not ASCII", { ...ask, function_call_id: "é" }],
    ["an unknown decision", { ...ask, decision: "maybe" }],
    ["no object", 7],
    ["nothing", undefined],
  ])("%s is invalid_payload, not an exception", async (_title, payload) => {
    expect(await setup().gate.resolve(payload, a)).toMatchObject({ ok: false, error: "invalid_payload", message: expect.any(String) });
  });
  test("a store that fails leaves the call pending and says so", async () => {
    const { gate, memory } = setup();
    memory.fail = new BusError("store_unavailable", "disk");
    expect(await gate.resolve(ask, a)).toMatchObject({ ok: false, error: "resume_failed" });
    delete memory.fail;
    expect(await gate.resolve(ask, a)).toEqual({ ok: true });
  });
  test("a decision whose acknowledgement got lost is not called lost, and stands when it is sent again", async () => {
    const { gate, memory } = setup();
    const { replace } = memory;
    memory.replace = async (row, rev) => {
      await replace.call(memory, row, rev);
      throw new BusError("disconnected", "the engine died");
    };
    const answer = await gate.resolve(ask, a);
    expect(answer).toMatchObject({ ok: false, error: "resume_failed", message: expect.stringContaining("not known") });
    expect(await gate.resolve(ask, a)).toMatchObject({
      error: "already_decided",
      first: { decision: "allow", by: "ann" },
    });
  });
  test("the list shows live holds only, oldest first", async () => {
    const later = { ...pending, function_call_id: "d", requested_at: 0, expires_at: null };
    const { gate, clock } = setup([pending, later, { ...decided, function_call_id: "e" }]);
    expect((await gate.pending("s")).map((row) => row.function_call_id)).toEqual(["d", "c"]);
    await clock.advance(500);
    expect((await gate.pending(undefined)).map((row) => row.function_call_id)).toEqual(["d"]);
  });
  test("at the moment of expiry a decision comes too late", async () => {
    const { gate, clock } = setup();
    await gate.pending(undefined);
    await clock.advance(500);
    expect(await gate.resolve(ask, a)).toMatchObject({ ok: false, error: "not_pending", message: expect.stringContaining("expired") });
  });
  test.each([-3, -1, 1, 2, 24])("K8.1, K8.2 a clock that steps by %i hours neither expires a call nor keeps it alive", async (hours) => {
    const { gate, clock } = setup();
    expect(await gate.pending("s")).toMatchObject([{ remaining_ms: 500 }]);
    clock.step(hours * 3_600_000);
    expect(await gate.pending("s")).toMatchObject([{ remaining_ms: 500 }]);
    await clock.advance(200);
    expect(await gate.pending("s")).toMatchObject([{ remaining_ms: 300 }]);
    await clock.advance(300);
    expect(await gate.pending("s")).toEqual([]);
    expect(await gate.resolve(ask, a)).toMatchObject({ ok: false, error: "not_pending" });
  });
  test("K8.1 a row that is met after the clock stepped back has no more time than it was given", async () => {
    const { gate, clock } = setup();
    clock.step(-3_600_000);
    expect(await gate.pending("s")).toMatchObject([{ remaining_ms: 999 }]);
  });
  test("K8.1 a row without end has none", async () => {
    const { gate, clock } = setup([{ ...pending, expires_at: null }]);
    clock.step(1e12);
    expect(await gate.pending("s")).toMatchObject([{ remaining_ms: null }]);
  });
});
