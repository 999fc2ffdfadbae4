// The official SDK, unmodified, as tool, as client and in place of two of our own workers.
import { registerWorker } from "iii-sdk";
import { afterEach, expect, test } from "vitest";
import { type Stack, startStack, until } from "../support/stack.ts";
import { ended, parked, post, programEntry, resolve, transcript, userMessage } from "../support/turns.ts";

process.env["OTEL_ENABLED"] = "false";

const clients: { shutdown(): Promise<void> | void }[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.shutdown();
});

function official(stack: Stack, url = stack.url) {
  const iii = registerWorker(url, { workerName: "official-client" });
  clients.push(iii);
  return iii;
}

test("A13 a function of the official SDK is called after approval; its client starts the turn, reads its events and approves", async () => {
  await using stack = await startStack();
  const iii = official(stack);
  const events: { streamName: string; groupId: string; event: { data: { type: string } } }[] = [];
  iii.registerFunction("official::echo", async (input: { text: string }) => ({ echoed: input.text }));
  iii.registerFunction("official::events", async (event: (typeof events)[number]) => {
    events.push(event);
    return null;
  });
  iii.registerTrigger({ type: "stream", function_id: "official::events", config: { stream_name: "agent::events" } });
  const posted = await iii.trigger<unknown, { status_code: number }>({
    function_id: "harness::trigger",
    payload: {
      session_id: "s1",
      payload: { provider: "scripted", model: "demo", messages: [userMessage('call official::echo {"text":"hi there"}')] },
    },
  });
  expect(posted.status_code).toBe(200);
  const [held] = await parked(stack, "s1");
  const answer = await official(stack, stack.keyUrl).trigger({
    function_id: "approval::resolve",
    payload: { session_id: "s1", function_call_id: held?.function_call_id, decision: "allow" },
  });
  expect(answer).toMatchObject({ ok: true });
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped" });
  expect((await transcript(stack, "s1")).results[0]?.text).toContain("hi there");
  await until("agent_end", () => events.some((event) => event.event.data.type === "agent_end") || undefined);
  const kinds = new Set(events.filter((event) => event.groupId === "s1").map((event) => event.event.data.type));
  for (const kind of ["message_update", "message_complete", "function_execution_start", "function_execution_end", "turn_end"]) {
    expect(kinds).toContain(kind);
  }
});

test("A13 models-catalog and policy by official processes, by an edit of config.yaml: the same turn ends the same", async () => {
  const swapped = (shipped: string) =>
    shipped
      .replace("  - name: models-catalog\n", programEntry("models-catalog", "official/catalog.ts"))
      .replace(/ {2}- name: policy[^\n]*\n/, programEntry("policy", "official/policy.ts"));
  await using stack = await startStack({ config: swapped });
  const listed = await stack.trigger<{ models: { display_name: string }[] }>("models::list", {});
  expect(listed.models.map((model) => model.display_name)).toEqual(["Demo, from the official SDK"]);
  await post(stack, "s1", 'call shell::fs::ls {"path":"."}');
  const [held] = await parked(stack, "s1");
  if (held === undefined) throw new Error("unreachable");
  await resolve(stack, held, "allow");
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped" });
  const { calls, results } = await transcript(stack, "s1");
  expect(calls).toHaveLength(1);
  expect(results).toMatchObject([{ is_error: false }]);
});

test("A13 a tool on the official SDK that tries to approve while an agent's call runs gets FORBIDDEN", async () => {
  await using stack = await startStack({ config: (shipped) => `${shipped}${programEntry("official-tool", "official/tool.ts")}` });
  await post(stack, "s1", 'calls [{"function":"official::attack","payload":{"session_id":"s1","function_call_id":"x"}}]');
  const [held] = await parked(stack, "s1");
  if (held === undefined) throw new Error("unreachable");
  await resolve(stack, held, "allow");
  await ended(stack, "s1");
  const { results } = await transcript(stack, "s1");
  expect(results[0]?.text).toContain("FORBIDDEN");
  expect(results[0]?.text).toContain('"refused":true');
});
