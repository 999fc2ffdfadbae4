// What the gate may answer: a decision, whole and of a decision's size. Everything else refuses the call.
import { defineWorker } from "@iii/sdk";
import { checkPermissions } from "@iii/worker-policy/contract";
import { expect, test } from "vitest";
import { z } from "zod";
import { call, ended, results, stack, start, text, tools, toyProvider, transcript, until, user } from "./rig.ts";

const long = "x".repeat(10_000_000);

test.each([
  ["K14.3 case 94 an allow with a rule id of 10 MB", { decision: "allow", rule_id: long }],
  ["case 94 an allow with 10 MB beside it", { decision: "allow", note: long }],
  [
    "case 94 an allow with ten thousand keys",
    { decision: "allow", ...Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i])) },
  ],
  ["K14.3 a question with a rule id of 10 MB", { decision: "needs_approval", rule_id: long }],
  ["case 94 a word", "allow"],
  ["case 94 nothing", null],
])("%s: the call is refused and does not run", async (_title, answer) => {
  const gate = defineWorker({
    name: "odd-gate",
    config: z.object({}),
    register: (_on, { iii }) => void iii.registerFunction(checkPermissions.id, () => answer),
  });
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::once")] : [text("ok")]));
  const toy = tools();
  await using bus = await stack([provider.worker, gate, toy.worker]);
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", ended);
  expect(toy.ledger).toHaveLength(0);
  expect(results(await transcript(bus, "s1"))[0]?.details).toMatchObject({ status: "denied", denied_by: "gate_unavailable" });
});
