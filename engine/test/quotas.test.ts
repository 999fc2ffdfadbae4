// Places, channels and routes belong to somebody, and what one of them does costs the others nothing.
import { testBus } from "@iii/engine/testing";
import { BusError, type ChannelRef, type Wire } from "@iii/sdk";
import { ManualClock, settle } from "@iii/sdk/testing";
import { expect, test, vi } from "vitest";
import { createRoutes } from "../src/builtin/http/routes.ts";
import { Triggers } from "../src/core/triggers.ts";
import { Pressure } from "../src/shell/pressure.ts";

const never = (): Promise<never> => new Promise(() => {});
const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "ok",
    (error: unknown) => (error instanceof BusError ? error.code : String(error)),
  );

test("K5.3 one worker's channels fill its own quota, and go with it", async () => {
  await using bus = await testBus();
  const greedy = await bus.connect("greedy");
  const other = await bus.connect("other");
  const create = (iii: typeof other) => iii.trigger<{ writer: ChannelRef; reader: ChannelRef }>("engine::channels::create", {});
  let last: { writer: ChannelRef } | undefined;
  for (let n = 0; n < 10_000; n += 500) {
    [last] = (await Promise.all(Array.from({ length: 500 }, () => create(greedy)))).slice(-1);
  }
  expect(await codeOf(create(greedy))).toBe("quota_exceeded");
  expect(await codeOf(create(other))).toBe("ok");
  const { channel_id, access_key } = last?.writer ?? { channel_id: "", access_key: "" };
  const path = `/ws/channels/${channel_id}?key=${access_key}&dir=write`;
  expect(bus.engine.check(path)).toBe(101);
  await greedy.close({ drain_ms: 0 });
  await settle();
  expect(bus.engine.check(path)).toBe(404);
});

test("K5.4 calls that never answer give their places back after their deadline", async () => {
  await using bus = await testBus([], { config: { limits: { max_in_flight: 3 } } });
  const tool = await bus.connect("tool");
  tool.registerFunction("tool::hangs", never);
  tool.registerFunction("tool::works", () => "done");
  await settle();
  const hung = Array.from({ length: 3 }, () => codeOf(bus.call("tool::hangs", {}, { origin: "agent", timeout_ms: 100 })));
  await settle();
  await bus.clock.advance(200);
  expect(await Promise.all(hung)).toEqual(["TIMEOUT", "TIMEOUT", "TIMEOUT"]);
  expect(await codeOf(bus.call("tool::works", {}))).toBe("too_many_in_flight");
  await bus.clock.advance(31_000);
  expect(await codeOf(bus.call("tool::works", {}))).toBe("ok");
});

test("K5.4 a late answer within that time gives the place back at once", async () => {
  await using bus = await testBus([], { config: { limits: { max_in_flight: 1 } } });
  const tool = await bus.connect("tool");
  let end: (value: string) => void = () => undefined;
  tool.registerFunction("tool::late", () => new Promise((resolve) => (end = resolve)));
  await settle();
  const late = codeOf(bus.call("tool::late", {}, { origin: "agent", timeout_ms: 100 }));
  await settle();
  await bus.clock.advance(200);
  expect(await late).toBe("TIMEOUT");
  end("late");
  await settle();
  tool.registerFunction("tool::works", () => "done");
  await settle();
  expect(await codeOf(bus.call("tool::works", {}))).toBe("ok");
});

test("K5.1 a queue's deliveries, and the calls made in them, take no places of the connection that runs them", async () => {
  const queues = { steps: { type: "standard", concurrency: 100 } } as const;
  await using bus = await testBus([], { config: { limits: { max_in_flight: 3 }, queues } });
  const turns = await bus.connect("turns");
  const model = await bus.connect("model");
  const tools = await Promise.all(Array.from({ length: 10 }, (_, n) => bus.connect(`tool-${n}`)));
  let asked = 0;
  for (const [n, tool] of tools.entries()) {
    tool.registerFunction(`tool::f${n}`, () => {
      asked += 1;
      return never();
    });
  }
  turns.registerFunction("turns::step", async (input) => {
    await turns.trigger(`tool::f${(input as { n: number }).n % 10}`, {});
  });
  turns.registerFunction("turns::works", () => "done");
  model.registerFunction("model::answer", () => "done");
  await settle();
  for (let n = 0; n < 20; n += 1) {
    await bus.call("engine::queue::enqueue", { queue: "steps", function_id: "turns::step", data: { n } });
  }
  await settle();
  expect(asked).toBe(20);
  expect(await codeOf(bus.call("turns::works", {}))).toBe("ok");
  expect(await codeOf(turns.trigger("model::answer", {}))).toBe("ok");
});

test("K6.2 answers that a caller does not read pause the caller, never the one that made them", () => {
  const clock = new ManualClock();
  const calls: string[] = [];
  const wire = (name: string, buffered: number): Wire => ({
    buffered,
    send: () => undefined,
    close: () => undefined,
    terminate: () => undefined,
    pause: () => void calls.push(`pause ${name}`),
    resume: () => void calls.push(`resume ${name}`),
  });
  const dropped: string[] = [];
  const pressure = new Pressure({ clock, max_buffered_bytes: 100, slow_consumer_ms: 1_000, drop: (id) => void dropped.push(id) });
  const slow = wire("slow", 500);
  pressure.sent("slow", slow, 500, { id: "slow", wire: slow });
  expect(calls).toEqual(["pause slow"]);
  expect(pressure.isPaused("slow")).toBe(true);
  clock.step(1_100);
  expect(dropped).toEqual([]);
  pressure.stop();
});

test("K6.2 a shared worker goes on serving others while one caller reads nothing of 2,000 answers of 200 KB", async () => {
  await using bus = await testBus();
  const worker = await bus.connect("worker");
  const text = "x".repeat(200_000);
  worker.registerFunction("worker::long", () => text);
  worker.registerFunction("worker::short", () => "ok");
  await settle();
  const handlers = bus.engine.accept("/", deafWire(), { principal: { kind: "operator", name: "slow" } });
  const encoder = new TextEncoder();
  for (let n = 0; n < 2_000; n += 1) {
    handlers?.message(
      encoder.encode(JSON.stringify({ type: "invokefunction", invocation_id: `i${n}`, function_id: "worker::long", data: {} })),
      false,
    );
  }
  for (let n = 0; n < 20; n += 1) expect(await codeOf(bus.call("worker::short", {}))).toBe("ok");
});

/** A reader that never takes anything. */
function deafWire(): Wire {
  let buffered = 0;
  return {
    get buffered() {
      return buffered;
    },
    send: (data) => {
      buffered += data.length;
    },
    close: () => undefined,
    terminate: () => undefined,
    pause: () => undefined,
    resume: () => undefined,
  };
}

test("K9.6 a look-up of one function reads no list", async () => {
  await using bus = await testBus();
  for (let n = 0; n < 20; n += 1) {
    const worker = await bus.connect(`worker-${n}`);
    worker.registerFunction(`worker${n}::f`, () => n);
  }
  await settle();
  const lists = [
    vi.spyOn(bus.engine.host.registry, "workers"),
    vi.spyOn(bus.engine.host.registry, "bindings"),
    vi.spyOn(bus.engine.host.registry, "functions"),
  ];
  expect(await bus.call("engine::functions::info", { function_id: "worker7::f" })).toMatchObject({ worker_name: "worker-7" });
  for (const list of lists) expect(list).not.toHaveBeenCalled();
});

test("K9.6 the bindings of a function are found by its id, also after some of them are gone", () => {
  const triggers = new Triggers();
  triggers.addBuiltin("state");
  const principal = { kind: "none", name: "" } as const;
  const binding = (id: string, function_id: string) => ({
    id,
    function_id,
    trigger_type: "state",
    config: {},
    metadata: null,
    worker_id: null,
    principal,
  });
  for (const id of ["a", "b", "c"]) triggers.bind(binding(id, id === "c" ? "g" : "f"), []);
  expect(triggers.bindingsOf("f").map(({ id }) => id)).toEqual(["a", "b"]);
  triggers.unbind("a", []);
  triggers.bind(binding("b", "g"), []);
  expect(triggers.bindingsOf("f")).toEqual([]);
  expect(triggers.bindingsOf("g").map(({ id }) => id)).toEqual(["c", "b"]);
});

const route = (id: string, api_path: string) => ({ id, function_id: `f::${id}`, config: { api_path, http_method: "GET" as const } });

test("K9.8 routes that are gone cost one new router, when one of them is in the way", () => {
  const routes = createRoutes();
  routes.add(route("param", "/things/:name"));
  for (let n = 0; n < 1_000; n += 1) routes.add(route(`r${n}`, `/things/n${n}`));
  expect(routes.match("GET", "/things/n5")?.route.id).toBe("r5");
  for (let n = 0; n < 1_000; n += 1) routes.remove(`r${n}`);
  // A dead static route must not hide the live one that stands behind it.
  expect(routes.match("GET", "/things/n5")).toEqual({ route: expect.objectContaining({ id: "param" }), params: { name: "n5" } });
  routes.add(route("again", "/things/n5"));
  expect(routes.match("GET", "/things/n5")?.route.id).toBe("again");
});

test("K9.8 a shape that is gone may come back with other parameter names", () => {
  const routes = createRoutes();
  routes.add(route("a", "/x/:one"));
  expect(() => routes.add(route("b", "/x/:two"))).toThrow(/same parameter names/);
  routes.remove("a");
  routes.add(route("b", "/x/:two"));
  expect(routes.match("GET", "/x/1")).toMatchObject({ route: { id: "b" }, params: { two: "1" } });
});
