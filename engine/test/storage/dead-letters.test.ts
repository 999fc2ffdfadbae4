import { logsList, queueDlqMessages, queueEnqueue, queueRedrive } from "@iii/engine/contract";
import { testBus } from "@iii/engine/testing";
import { expect, test } from "vitest";
import { probe } from "./helpers.ts";

const SECRETS = ["sk-ant-REDACTED", "ghp_0123456789abcdefghijABCDEFGHIJ"];
const URL_SECRET = "hunter2hunter2";
const LEAKY = `GET https://user:${URL_SECRET}@example.test/x failed, key ${SECRETS.join(" and ")}`;

test("K13.2 a dead letter and a log show no secret, in URLs neither; what is delivered again is whole", async () => {
  const seen = probe("leaky::fn");
  seen.answer = () => Promise.reject(new Error(LEAKY));
  await using bus = await testBus([seen.worker], { config: { queues: { once: { max_retries: 1 } } } });
  const data = { note: LEAKY, password: "correct horse" };
  await bus.call(queueEnqueue, { queue: "once", function_id: "leaky::fn", data });
  await bus.call("engine::log::error", { message: LEAKY, data: { url: `https://${URL_SECRET}@example.test`, nested: [LEAKY] } });
  await bus.settle();
  const dead = await bus.call(queueDlqMessages, { queue: "once" });
  const { logs } = await bus.call(logsList, {});
  expect([dead.length, logs.length]).toEqual([1, 1]);
  for (const secret of [...SECRETS, URL_SECRET, "correct horse"]) expect(JSON.stringify([dead, logs])).not.toContain(secret);
  expect(dead[0]?.error).toContain("example.test");
  await bus.call(queueRedrive, { queue: "once" });
  await bus.settle();
  expect(seen.inputs()).toEqual([data, data]);
});
