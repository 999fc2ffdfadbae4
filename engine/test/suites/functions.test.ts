// What the official suites ask of functions and of the engine's lists.
import { describe, expect, test, vi } from "vitest";
import { GENERATIONS, suite } from "./clients.ts";

interface Row {
  readonly id: string;
  readonly function_id: string;
  readonly worker_name?: unknown;
  readonly config_summary?: unknown;
  readonly description?: string;
  readonly configuration_schema?: unknown;
}

const soon = { timeout: 2_000, interval: 5 };

describe.each(GENERATIONS)("P7.1 $name", (generation) => {
  test("a registered function is listed and called; unregistered, it is gone and a call is refused", async () => {
    const { iii, call, settled } = await suite(generation);
    const echo = iii.registerFunction("suite::echo", async (data: { n: number }) => ({ got: data.n }));
    const ids = async () => (await call<{ functions: Row[] }>("engine::functions::list", {})).functions.map((row) => row.function_id);
    await settled();
    expect(await ids()).toContain("suite::echo");
    expect(await call("suite::echo", { n: 7 })).toEqual({ got: 7 });
    echo.unregister();
    await settled();
    expect(await ids()).not.toContain("suite::echo");
    await expect(call("suite::echo", {})).rejects.toMatchObject({ code: "function_not_found" });
  });

  test("a handler's error, a missing function and a null keep their shapes", async () => {
    const { iii, call } = await suite(generation);
    iii.registerFunction("suite::fail", async () => {
      throw new Error("no");
    });
    iii.registerFunction("suite::nothing", async () => null);
    await expect(call("suite::fail", {})).rejects.toMatchObject({ code: "invocation_failed" });
    await expect(call("suite::missing", {})).rejects.toMatchObject({ code: "function_not_found" });
    expect(await call("suite::nothing", {})).toBeUndefined();
  });

  test("a void call is delivered and answers at once", async () => {
    const { iii } = await suite(generation);
    const got = Promise.withResolvers<unknown>();
    iii.registerFunction("suite::sink", async (data) => got.resolve(data));
    expect(await iii.trigger({ function_id: "suite::sink", payload: { a: 1 }, action: { type: "void" } })).toBeUndefined();
    expect(await got.promise).toMatchObject({ a: 1 });
  });

  test("two clients under the default name live side by side; of two owners of one id the last serves, then the first again", async () => {
    const { iii, client, call, settled } = await suite(generation);
    iii.registerFunction("suite::who", async () => "first");
    await settled();
    const second = client();
    second.registerFunction("suite::who", async () => "second");
    await second.trigger({ function_id: "state::list_groups", payload: {} });
    expect(await call("suite::who", {})).toBe("second");
    await second.shutdown();
    await vi.waitFor(async () => expect(await call("suite::who", {})).toBe("first"), soon);
  });

  test("a bound trigger is in the list of its generation at once, and leaves it when it is unregistered", async () => {
    const { iii, call, settled } = await suite(generation);
    iii.registerFunction("suite::on", async () => undefined);
    const bound = iii.registerTrigger({ type: "http", function_id: "suite::on", config: { api_path: "/on", http_method: "GET" } });
    await settled();
    const rows = async () =>
      (await call<{ registered_triggers: Row[] }>("engine::registered-triggers::list", {})).registered_triggers.filter(
        (row) => row.function_id === "suite::on",
      );
    expect(await rows()).toMatchObject([{ trigger_type: "http", worker_name: expect.any(String), config_summary: expect.any(String) }]);
    const { triggers } = await call<{ triggers: Row[] }>("engine::triggers::list", {});
    if (generation.listsInstances) expect(triggers.map((row) => row.function_id)).toContain("suite::on");
    else {
      const http = triggers.find((row) => row.id === "http");
      expect(http?.description).toEqual(expect.any(String));
      expect(http).not.toHaveProperty("configuration_schema");
    }
    bound.unregister();
    await settled();
    expect(await rows()).toEqual([]);
  });

  test("engine::functions-available tells of a new function, and nothing after it is unregistered", async () => {
    const { iii, settled } = await suite(generation);
    const seen: string[][] = [];
    iii.registerFunction(
      "suite::watch",
      async ({ functions }: { functions: Row[] }) => void seen.push(functions.map((row) => row.function_id)),
    );
    const watch = iii.registerTrigger({ type: "engine::functions-available", function_id: "suite::watch", config: {} });
    await settled();
    iii.registerFunction("suite::new", async () => undefined);
    await vi.waitFor(() => expect(seen.some((ids) => ids.includes("suite::new"))).toBe(true), { timeout: 10_000, interval: 5 });
    watch.unregister();
    await settled();
    const before = seen.length;
    iii.registerFunction("suite::newer", async () => undefined);
    iii.registerFunction("suite::probe", async () => seen.length);
    await settled();
    expect(seen.slice(before).some((ids) => ids.includes("suite::newer"))).toBe(false);
  });
});
