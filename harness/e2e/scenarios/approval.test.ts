// A parked call and everything that may happen to it, with real processes that really die.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isAlive, type Stack, type StackOptions, startStack, until } from "../support/stack.ts";
import {
  ended,
  parked,
  pending,
  post,
  programEntry,
  readLedger,
  resolve,
  startsPerAttempt,
  stateOf,
  transcript,
} from "../support/turns.ts";

const withLedger = (shipped: string) => `${shipped}${programEntry("ledger", "support/ledger-worker.ts")}`;

/** One process, or two: both ways of running bundled workers. */
const WAYS: { way: string; options: Pick<StackOptions, "bundled"> }[] = [
  { way: "one process", options: {} },
  { way: "host and engine", options: { bundled: "process" } },
];

async function killAll(stack: Stack): Promise<Stack> {
  const host = await stack.pid("host");
  if (host !== (await stack.pid("engine"))) process.kill(host, "SIGKILL");
  await stack.kill9("engine");
  return stack.restart();
}

test.each(WAYS)("A4, A14, P9 a parked call outlives $way; allow runs it once, and the trace is one tree", async ({ options }) => {
  await using stack = await startStack(options);
  await post(stack, "s1", 'call shell::fs::ls {"path":"."}');
  const [before] = await parked(stack, "s1");
  expect(before).toMatchObject({ function_id: "shell::fs::ls", args: { path: "." } });
  await using again = await killAll(stack);
  const [held] = await parked(again, "s1");
  expect(held).toEqual({ ...before, remaining_ms: expect.any(Number) });
  if (held === undefined) throw new Error("unreachable");
  expect(await resolve(again, held, "allow", { args_sha256: held.args_sha256 })).toEqual({ ok: true });
  expect(await ended(again, "s1")).toMatchObject({ state: "stopped" });
  const { calls, results } = await transcript(again, "s1");
  expect(calls).toHaveLength(1);
  expect(results).toMatchObject([{ function_call_id: calls[0]?.id, is_error: false }]);
  expect(await pending(again, "s1")).toEqual([]);

  const { groups } = await again.trigger<{ groups: { value: string; trace_ids: string[] }[] }>("engine::traces::group_by", {
    attribute: "iii.session.id",
  });
  // P9: one turn, one trace. Our own reads of the session, and the decision, are traces of their own, and not the session's.
  const trace_id = (await stateOf(again, "s1"))?.traceparent?.split("-")[1];
  expect(groups.find((one) => one.value === "s1")?.trace_ids).toEqual([trace_id]);
  const tree = await until("the spans of the last step", async () => {
    const found = await again.trigger<{ roots: Span[] }>("engine::traces::tree", { trace_id });
    return flat(found.roots).some((span) => span.name.includes("shell::fs::ls")) ? found : undefined;
  });
  expect(tree.roots).toHaveLength(1);
  const spans = flat(tree.roots);
  const ids = new Set(spans.map((span) => span.span_id));
  expect(spans.filter((span) => span.parent_span_id !== null && !ids.has(span.parent_span_id))).toEqual([]);
});

interface Span {
  name: string;
  span_id: string;
  parent_span_id: string | null;
  children: Span[];
}
function flat(spans: Span[]): Span[] {
  return spans.flatMap((span) => [span, ...flat(span.children ?? [])]);
}

test.each(WAYS)("A4 a denial outlives $way, and nothing runs", async ({ options }) => {
  await using stack = await startStack({ ...options, config: withLedger, env: { LEDGER: "ledger.txt" } });
  await post(stack, "s1", 'call ledger::append {"note":"a"}');
  await parked(stack, "s1");
  await using again = await killAll(stack);
  const [held] = await parked(again, "s1");
  if (held === undefined) throw new Error("unreachable");
  expect(await resolve(again, held, "deny", { reason: "not today" })).toEqual({ ok: true });
  expect(await ended(again, "s1")).toMatchObject({ state: "stopped" });
  const { results } = await transcript(again, "s1");
  expect(results).toHaveLength(1);
  expect(results[0]).toMatchObject({ is_error: true, details: { status: "denied", denied_by: "user" } });
  expect(results[0]?.text).toContain("not today");
  expect(readLedger(join(stack.folder, "ledger.txt"))).toEqual([]);
});

test("A4 two decisions at once: one stands, the other hears which", async () => {
  await using stack = await startStack({ config: withLedger, env: { LEDGER: "ledger.txt" } });
  await post(stack, "s1", 'call ledger::append {"note":"a"}');
  const [held] = await parked(stack, "s1");
  if (held === undefined) throw new Error("unreachable");
  const answers = await Promise.all([resolve(stack, held, "allow"), resolve(stack, held, "deny")]);
  expect(answers.filter((answer) => (answer as { ok: boolean }).ok)).toHaveLength(1);
  const lost = answers.find((answer) => !(answer as { ok: boolean }).ok) as { error: string };
  expect(["already_decided", "not_pending"]).toContain(lost.error);
  await ended(stack, "s1");
  const { results } = await transcript(stack, "s1");
  expect(results).toHaveLength(1);
  const allowed = (answers[0] as { ok: boolean }).ok;
  expect([...startsPerAttempt(join(stack.folder, "ledger.txt")).values()]).toEqual(allowed ? [1] : []);
  expect(await resolve(stack, held, "allow")).toMatchObject({ ok: false });
});

test("A4 a call that nobody decides expires: a denial, and the turn goes on", async () => {
  const soon = (shipped: string) =>
    withLedger(shipped).replace(
      "  - name: turn-orchestrator\n",
      "  - name: turn-orchestrator\n    config: { approval_timeout_ms: 2500 }\n",
    );
  await using stack = await startStack({ config: soon, env: { LEDGER: "ledger.txt" } });
  await post(stack, "s1", 'call ledger::append {"note":"a"}');
  const [held] = await parked(stack, "s1");
  if (held === undefined) throw new Error("unreachable");
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped" });
  const { results } = await transcript(stack, "s1");
  expect(results).toMatchObject([{ is_error: true, details: { denied_by: "expired" } }]);
  expect(await resolve(stack, held, "allow")).toMatchObject({ ok: false, error: "not_pending" });
  expect(readLedger(join(stack.folder, "ledger.txt"))).toEqual([]);
});

test("A4 arguments changed in the store after parking are refused: nothing is dispatched", async () => {
  await using stack = await startStack({ config: withLedger, env: { LEDGER: "ledger.txt" } });
  await post(stack, "s1", 'call ledger::append {"note":"reviewed"}');
  const [held] = await parked(stack, "s1");
  if (held === undefined) throw new Error("unreachable");
  const key = `s1/${held.function_call_id}`;
  const row = await stack.trigger<Record<string, unknown>>("state::get", { scope: "approvals", key });
  await stack.trigger("state::set", { scope: "approvals", key, value: { ...row, args: { note: "changed" } } });
  expect(await resolve(stack, held, "allow")).toMatchObject({ ok: false, error: "args_changed" });
  // The same change made behind the gate's back, decision included: the orchestrator recomputes and refuses.
  const decided = { decision: "allow", reason: null, by: "test", decided_at: Date.now() };
  await stack.trigger("state::set", {
    scope: "approvals",
    key,
    value: { ...row, args: { note: "changed" }, status: "decided", ...decided },
  });
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped" });
  const { results } = await transcript(stack, "s1");
  expect(results).toHaveLength(1);
  expect(results[0]?.is_error).toBe(true);
  expect(readLedger(join(stack.folder, "ledger.txt"))).toEqual([]);
});

/** Live processes whose command line holds a text. */
function withCommand(text: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && isAlive(pid) && commandOf(pid).includes(text));
}
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

test("A5 abort during a shell command: the whole process group is gone before the turn is shown as stopped", async () => {
  await using stack = await startStack();
  const seconds = `12${Math.floor(Math.random() * 9000 + 1000)}`;
  await post(stack, "s1", `call shell::exec {"command":"sh","args":["-c","sleep ${seconds} & wait"]}`);
  const [held] = await parked(stack, "s1");
  if (held === undefined) throw new Error("unreachable");
  await resolve(stack, held, "allow");
  await until("the command to run", () => withCommand(`sleep ${seconds}`).length > 0 || undefined);
  expect(await stateOf(stack, "s1")).toMatchObject({ state: "function_execute" });
  await stack.trigger("run::abort", { session_id: "s1" });
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped", stop_reason: "aborted" });
  expect(withCommand(`sleep ${seconds}`)).toEqual([]);
  const { calls, results } = await transcript(stack, "s1");
  expect(calls).toHaveLength(1);
  expect(results.map((result) => result.function_call_id)).toEqual([calls[0]?.id]);
});
