// The thin harness: a loop, a provider, credentials and the meta-worker. No session, policy, approval or catalogue worker.

import { join } from "node:path";
import { expect, test } from "vitest";
import { startStack, until } from "../support/stack.ts";
import { ended, post, programEntry, readLedger } from "../support/turns.ts";

const thin = (policy: string) => `version: 1
engine: { port: "\${III_PORT:-0}", http: { port: "\${III_HTTP_PORT:-0}" }, data: "\${III_DATA_DIR:-.iii}" }
workers:
  - name: turn-orchestrator
  - name: auth-credentials
  - name: provider-scripted
  - name: harness
${policy}${programEntry("ledger", "support/ledger-worker.ts")}`;

interface Item {
  data: { type: string; message?: { role?: string; content?: { type: string; text?: string }[] }; is_error?: boolean };
}

test("A17 four workers are a harness; `policy: allow_all` is said out loud; the transcript is kept all the same", async () => {
  const config = thin("    config: { policy: allow_all }\n");
  await using stack = await startStack({ config, env: { LEDGER: "ledger.txt" } });
  await until("the banner's warning", () => /allow.all|every (tool )?call is allowed/i.test(stack.output().stdout) || undefined);
  await post(stack, "s1", 'call ledger::append {"note":"a"}');
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped", stop_reason: "end" });
  expect(readLedger(join(stack.folder, "ledger.txt")).map(([kind]) => kind)).toEqual(["start", "end"]);
  // The second turn knows the first: what the model is given came from the orchestrator's own transcript.
  await post(stack, "s1", "say again");
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped", stop_reason: "end" });
  const { items } = await stack.trigger<{ items: Item[] }>("stream::read", { stream_name: "agent::events", group_id: "s1" });
  expect(items.filter((item) => item.data.type === "agent_end")).toHaveLength(2);
});

test("A17 without a policy worker every call is refused, and the turn goes on", async () => {
  await using stack = await startStack({ config: thin(""), env: { LEDGER: "ledger.txt" } });
  await post(stack, "s1", 'call ledger::append {"note":"a"}');
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped", stop_reason: "end" });
  expect(readLedger(join(stack.folder, "ledger.txt"))).toEqual([]);
  const { items } = await stack.trigger<{ items: { data: unknown }[] }>("stream::read", { stream_name: "agent::events", group_id: "s1" });
  const end = items.map((item) => item.data as { type: string; result?: { details?: { denied_by?: string } } });
  expect(end.find((event) => event.type === "function_execution_end")?.result?.details?.denied_by).toBe("gate_unavailable");
});
