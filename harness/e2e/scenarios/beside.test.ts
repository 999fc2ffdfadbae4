// What fails or waits beside a turn does not end it, with real processes.
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Stack, startStack, until } from "../support/stack.ts";
import { ended, post, programEntry, readLedger, startsPerAttempt, transcript } from "../support/turns.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({
    config: (shipped) =>
      shipped
        .replace("  - name: session\n", "  - { name: session, isolate: true }\n")
        .concat(programEntry("ledger", "support/ledger-worker.ts")),
    permissions: "version: 1\nrules:\n  - ledger::append\n",
    env: { LEDGER: "ledger.txt" },
  });
});
afterAll(() => stack[Symbol.asyncDispose]());

test("K3.1 the session worker is killed while a tool runs: the tool runs to its own result, once, and the transcript has all of it", async () => {
  const ledger = join(stack.folder, "ledger.txt");
  await post(stack, "away", 'call ledger::append {"note":"away","hold_ms":1500}');
  await until("the tool to start", () => readLedger(ledger).some(([kind, , , note]) => kind === "start" && note === "away") || undefined);
  await stack.kill9("session");
  expect(await ended(stack, "away")).toMatchObject({ state: "stopped", stop_reason: "end" });
  const { calls, results } = await until("the session worker", () => transcript(stack, "away").catch(() => undefined));
  expect(results).toMatchObject([{ function_call_id: calls[0]?.id, is_error: false }]);
  expect(results[0]?.text).toContain("away");
  expect([...startsPerAttempt(ledger).values()]).toEqual([1]);
});

test("K3.3 60 turns are asked for at once on one session: all are kept, and follow each other in order of arrival", async () => {
  const notes = Array.from({ length: 60 }, (_, n) => `turn-${n}.`);
  const posted = await Promise.all(notes.map((note) => post(stack, "line", `say ${note}`, { if_busy: "queue" })));
  expect(posted.filter(({ body }) => body.turn_id === undefined)).toEqual([]);
  const { messages } = await until(
    "the last turn",
    async () => {
      const path = await transcript(stack, "line");
      return path.messages.length >= 120 ? path : undefined;
    },
    80_000,
  );
  const said = messages.map((message) => `${message.role} ${/turn-\d+\./.exec(JSON.stringify(message))?.[0]}`);
  expect(said).toEqual(notes.flatMap((note) => [`user ${note}`, `assistant ${note}`]));
}, 120_000);
