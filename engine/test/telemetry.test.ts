import { logsList, tracesGroupBy, tracesTree } from "@iii/engine/contract";
import { type Client, connect, defineFunction, defineWorker, silentLogger, startWorker, systemClock, systemRandom } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { startTelemetry } from "@iii/sdk/trace";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { type Listening, listeningEngine } from "./fixtures/listening.ts";

const SECRET = "sk-live-0123456789abcdef";

let engine: Listening;
let url: string;
let iii: Client;

beforeEach(async () => {
  engine = await listeningEngine();
  url = engine.url;
  iii = connect({ dialer: wsDialer(url) });
});

afterEach(async () => {
  await iii.close({ drain_ms: 0 });
  await engine.stop();
});

test("spans and log records of a worker process reach the engine as one tree, without secrets", async () => {
  const dialer = wsDialer(url);
  const telemetry = startTelemetry({ dialer, env: {} });
  const inner = defineFunction({ id: "two::inner", about: "Inner.", input: z.object({}), output: z.object({ ok: z.boolean() }) });
  const outer = defineFunction({
    id: "one::outer",
    about: "Outer.",
    input: z.object({ session_id: z.string(), message_id: z.string(), note: z.string() }),
    output: z.unknown(),
  });
  const one = defineWorker({
    name: "one",
    config: z.object({}),
    register(on, context) {
      on(outer, async ({ note }) => {
        context.log.warn({ note, n: 1 }, `noted ${note}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
        return context.iii.trigger(inner, {});
      });
    },
  });
  const two = defineWorker({ name: "two", config: z.object({}), register: (on) => on(inner, () => ({ ok: true })) });
  const started = await Promise.all(
    [one, two].map((worker) => {
      const log = telemetry.logger(silentLogger, worker.name);
      const client = connect({ dialer, log, spans: telemetry.spans(worker.name) });
      return startWorker(worker, { iii: client, config: {}, clock: systemClock, random: systemRandom, log, root: "." });
    }),
  );
  expect(await iii.trigger(outer, { session_id: "s1", message_id: "m1", note: SECRET })).toEqual({ ok: true });
  await Promise.all(started.map((worker) => worker.stop()));
  await telemetry.stop();

  const { groups } = await iii.trigger(tracesGroupBy, { attribute: "iii.session.id" });
  const { roots } = await iii.trigger(tracesTree, { trace_id: groups[0]?.trace_ids[0] ?? "" });
  expect(roots).toMatchObject([
    {
      name: "execute one::outer",
      service_name: "one",
      status: "ok",
      children: [{ name: "execute two::inner", service_name: "two", children: [] }],
    },
  ]);
  const { logs } = await iii.trigger(logsList, { severity_text: "WARN" });
  expect(logs).toMatchObject([{ body: "noted [redacted]", service_name: "one", trace_id: roots[0]?.trace_id, span_id: roots[0]?.span_id }]);
  expect(JSON.stringify([roots, logs])).not.toContain(SECRET);
});

test("telemetry that is switched off records nothing and costs no wire", async () => {
  const dialer = { address: "none", dial: () => expect.fail("nothing may be dialled") };
  const telemetry = startTelemetry({ dialer, env: { OTEL_ENABLED: "false" } });
  expect(telemetry.spans("x")).toBeUndefined();
  await telemetry.stop();
});
