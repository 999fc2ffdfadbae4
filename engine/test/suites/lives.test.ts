// What the official suites ask when connections come and go, and of logs.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { registerWorker as registerWorkerOf011 } from "iii-sdk-0-11";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { httpBench } from "../http/bench.ts";
import { GENERATIONS, NODE, suite } from "./clients.ts";

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 5_000, interval: 10 });

/** A line to the engine that can be cut: what goes through it then ends on both sides. */
function line(): { via: (url: string) => Promise<string>; cut(): void } {
  const open = new Set<Socket>();
  const via = async (url: string): Promise<string> => {
    const { port, pathname } = new URL(url);
    const server = createServer((near) => {
      const far = connect(Number(port), "127.0.0.1");
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        open.add(one);
        one.pipe(other);
        one.on("error", () => undefined);
        one.on("close", () => {
          open.delete(one);
          other.destroy();
        });
      }
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    return `ws://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`;
  };
  return { via, cut: () => open.forEach((one) => void one.destroy()) };
}

describe.each(NODE)("P7.4 $name", (generation) => {
  test("a client whose line is cut dials again: its functions and triggers are there once, and its next call is answered", async () => {
    const { via, cut } = line();
    const { iii, call } = await suite(generation, via);
    const seen: unknown[] = [];
    iii.registerFunction("suite::on", async ({ new_value }) => void seen.push(new_value));
    iii.registerTrigger({ type: "state", function_id: "suite::on", config: { scope: "suite" } });
    await call("state::set", { scope: "suite", key: "k", value: 1 });
    await eventually(() => expect(seen).toEqual([1]));
    cut();
    // What was sent into the dead line is lost: asked again, as callers do.
    const set = { function_id: "state::set", payload: { scope: "suite", key: "k", value: 2 }, timeoutMs: 200 };
    await eventually(() => iii.trigger(set));
    await eventually(() => expect(new Set(seen)).toEqual(new Set([1, 2])));
    const { workers } = await call<{ workers: { runtime: string | null }[] }>("engine::workers::list", {});
    expect(workers.filter(({ runtime }) => runtime === "node")).toHaveLength(1);
  });
});

describe.each(GENERATIONS)("P7.1 logs $name", (generation) => {
  test("what is logged is listed with its level", async () => {
    const { call } = await suite(generation);
    await call("engine::log::info", { message: "suite says hello", service_name: "suite" });
    await call("engine::log::warn", { message: "suite warns", data: { n: 1 } });
    const { logs } = await call<{ logs: { body: string; severity_text: string }[] }>("engine::logs::list", {});
    const mine = logs.filter(({ body }) => body.startsWith("suite")).map(({ body, severity_text }) => [body, severity_text]);
    expect(mine.toSorted()).toEqual([
      ["suite says hello", "INFO"],
      ["suite warns", "WARN"],
    ]);
  });
});

test("P7.1 a service of the first generation is accepted and changes no routing", async () => {
  const bench = await httpBench();
  const sdk = registerWorkerOf011(bench.busUrl);
  onTestFinished(async () => {
    await sdk.shutdown();
    await bench.stop();
  });
  sdk.registerService({ id: "suite", name: "suite", description: "a service" });
  sdk.registerFunction("suite::echo", async (data: { n: number }) => data.n);
  expect(await sdk.trigger({ function_id: "suite::echo", payload: { n: 3 } })).toBe(3);
  const { trigger_types } = await sdk.trigger<object, { trigger_types: { id: string }[] }>({
    function_id: "engine::trigger-types::list",
    payload: {},
  });
  expect(trigger_types.map(({ id }) => id)).toEqual(expect.arrayContaining(["http", "state"]));
});
