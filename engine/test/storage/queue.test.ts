import { BusError } from "@iii/sdk";
import { until } from "@iii/sdk/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { queueDlqMessages, queueRedrive, queueRedriveMessage, queueTopicStats } from "../../src/builtin/storage/queue/contract.ts";
import { stateTransact } from "../../src/builtin/storage/state/contract.ts";
import { testBus } from "../../src/testing/index.ts";
import { gate, probe } from "./helpers.ts";

const config = {
  queues: {
    one: { concurrency: 1, max_retries: 3, backoff_ms: 100 },
    many: { concurrency: 5, max_retries: 3, backoff_ms: 100 },
    groups: { type: "fifo" as const, message_group_field: "g", concurrency: 3, max_retries: 3, backoff_ms: 100 },
  },
};
type Bus = Awaited<ReturnType<typeof testBus>>;
const put = (bus: Bus, queue: string, data: unknown, more: object = {}, function_id = "jobs::run") =>
  bus.call<{ messageReceiptId: string }>(function_id, data, { action: { type: "enqueue", queue, ...more } });
const fail = () => {
  throw new BusError("invocation_failed", "not today");
};

describe("queues", () => {
  test("an accepted message is delivered unchanged, once, and is then gone", async () => {
    const jobs = probe("jobs::run");
    await using bus = await testBus([jobs.worker], { config });
    const { messageReceiptId } = await put(bus, "many", { a: [1, "é"] });
    expect(messageReceiptId).toMatch(/^[0-9a-f-]{36}$/);
    await until(() => jobs.seen.length === 1);
    expect(jobs.inputs()).toEqual([{ a: [1, "é"] }]);
    await bus.settle();
    expect(await bus.call(queueTopicStats, { queue: "many" })).toEqual({ depth: 0, consumer_count: 5, dlq_depth: 0, config: null });
    await bus.crash();
    await bus.settle();
    expect(jobs.seen).toHaveLength(1);
  });

  test.each([
    ["unknown queue", "nope", {}, /Queue 'nope' not found/],
    ["fifo without its group", "groups", { h: 1 }, /'groups'.*data\.g/],
    ["fifo with a null group", "groups", { g: null }, /'groups'.*data\.g/],
  ])("%s is an enqueue_error", async (_title, queue, data, message) => {
    await using bus = await testBus([], { config });
    const sent = put(bus, queue, data);
    await expect(sent).rejects.toMatchObject({ code: "enqueue_error", message: expect.stringMatching(message) });
  });

  test("the queue named default exists, concurrency bounds what runs, and concurrency 1 keeps order", async () => {
    const jobs = probe("jobs::run");
    const gates = Array.from({ length: 8 }, gate);
    jobs.answer = (input) => gates[(input as { n: number }).n]?.promise;
    await using bus = await testBus([jobs.worker], { config });
    await put(bus, "default", { n: 7 });
    for (let n = 0; n < 7; n += 1) await put(bus, "many", { n });
    await bus.settle();
    expect(jobs.seen).toHaveLength(6);
    for (const one of gates) one.open();
    await until(() => jobs.seen.length === 8);
    jobs.answer = () => null;
    for (let n = 10; n < 20; n += 1) void put(bus, "one", { n });
    await until(() => jobs.seen.length === 18);
    expect(jobs.inputs<{ n: number }>().slice(8)).toEqual(Array.from({ length: 10 }, (_, n) => ({ n: n + 10 })));
  });

  test("fifo: one at a time and in order per group, groups beside each other; a failed head blocks only its group", async () => {
    const jobs = probe("jobs::run");
    let broken = true;
    jobs.answer = (input) => {
      const { g, n } = input as { g: string; n: number };
      if (g === "a" && n === 1 && broken) fail();
      return null;
    };
    await using bus = await testBus([jobs.worker], { config });
    for (const n of [1, 2, 3]) for (const g of ["a", "b"]) await put(bus, "groups", { g, n });
    await bus.settle();
    const done = (g: string) => jobs.inputs<{ g: string; n: number }>().flatMap((job) => (job.g === g ? [job.n] : []));
    expect(done("b")).toEqual([1, 2, 3]);
    expect(done("a")).toEqual([1]);
    broken = false;
    await bus.clock.advance(100);
    expect(done("a")).toEqual([1, 1, 2, 3]);
  });

  test("a key in the words of a failure is not kept with the dead message", async () => {
    const jobs = probe("jobs::run");
    jobs.answer = () => {
      throw new BusError("invocation_failed", "refused: sk-live-0123456789abcdef");
    };
    await using bus = await testBus([jobs.worker], { config });
    await put(bus, "many", {});
    for (let n = 0; n < 5; n += 1) {
      await bus.settle();
      await bus.clock.advance(1_000);
    }
    expect(await bus.call(queueDlqMessages, { topic: "many" })).toMatchObject([{ error: "invocation_failed: refused: [redacted]" }]);
  });

  test("attempts are counted, backoff doubles, the last failure is one dead letter that can be redriven", async () => {
    const jobs = probe("jobs::run");
    jobs.answer = fail;
    await using bus = await testBus([jobs.worker], { config });
    await put(bus, "many", { n: 1 });
    await bus.settle();
    expect(jobs.seen).toHaveLength(1);
    await bus.clock.advance(99);
    expect(jobs.seen).toHaveLength(1);
    await bus.clock.advance(1);
    expect(jobs.seen).toHaveLength(2);
    await bus.clock.advance(199);
    expect(jobs.seen).toHaveLength(2);
    await bus.crash();
    await bus.clock.advance(1_000);
    expect(jobs.seen).toHaveLength(3);
    const [dead] = await bus.call(queueDlqMessages, { topic: "many" });
    expect(dead).toMatchObject({ payload: { n: 1 }, retries: 3, error: expect.stringContaining("not today"), size_bytes: 7 });
    expect(await bus.call("engine::queue::dlq_topics", {})).toEqual([{ topic: "many", broker_type: "function_queue", message_count: 1 }]);
    await bus.crash();
    expect(await bus.call(queueTopicStats, { queue: "many" })).toMatchObject({ depth: 0, dlq_depth: 1 });
    const id = dead?.id ?? "";
    expect(await bus.call(queueRedriveMessage, { queue: "many", message_id: id })).toEqual({ queue: "many", message_id: id, redriven: 1 });
    await bus.clock.advance(1_000);
    expect(jobs.seen).toHaveLength(6);
    expect(await bus.call(queueDlqMessages, { queue: "many" })).toMatchObject([{ id }]);
    jobs.answer = () => null;
    expect(await bus.call(queueRedrive, { queue: "many" })).toEqual({ queue: "many", redriven: 1 });
    await until(() => jobs.seen.length === 7);
    await bus.settle();
    expect(await bus.call(queueTopicStats, { queue: "many" })).toMatchObject({ depth: 0, dlq_depth: 0 });
  });

  test("a message whose function nobody serves waits without losing attempts", async () => {
    await using bus = await testBus([], { config });
    await put(bus, "many", { n: 1 });
    await bus.clock.advance(60_000);
    const iii = await bus.connect("late");
    const got: unknown[] = [];
    iii.registerFunction("jobs::run", (input) => got.push(input));
    await until(() => got.length === 1);
    await bus.settle();
    expect(await bus.call(queueTopicStats, { queue: "many" })).toMatchObject({ depth: 0, dlq_depth: 0 });
  });

  test("a lost executor costs no attempt", async () => {
    await using bus = await testBus([], { config });
    await put(bus, "one", { n: 1 });
    for (let round = 0; round < 5; round += 1) {
      const iii = await bus.connect(`dying${round}`);
      let called = false;
      iii.registerFunction("jobs::run", () => {
        called = true;
        return new Promise(() => undefined);
      });
      await bus.clock.advance(10_000);
      await until(() => called, "the delivery");
      await iii.close({ drain_ms: 0 });
      await bus.settle();
    }
    expect(await bus.call(queueTopicStats, { queue: "one" })).toMatchObject({ depth: 1, dlq_depth: 0 });
  });

  test.each(["invocation_stopped", "disconnected", "too_many_in_flight", "function_not_found"])(
    "a handler that answers %s has failed: what its own calls met is no interruption of it",
    async (code) => {
      const jobs = probe("jobs::run");
      await using bus = await testBus([jobs.worker], { config });
      jobs.answer = () => {
        throw new BusError(code, "a worker that the handler called is gone");
      };
      await put(bus, "many", { n: 1 });
      for (let round = 0; round < 6; round += 1) await bus.clock.advance(10_000);
      expect(jobs.seen).toHaveLength(3);
      expect(await bus.call(queueTopicStats, { queue: "many" })).toMatchObject({ depth: 0, dlq_depth: 1 });
    },
  );

  test("a delayed message does not hold up its group, and survives a restart", async () => {
    const jobs = probe("jobs::run");
    await using bus = await testBus([jobs.worker], { config });
    await put(bus, "groups", { g: "a", n: "later" }, { delay_ms: 1_800_000 });
    await put(bus, "groups", { g: "a", n: "now" });
    await until(() => jobs.seen.length === 1);
    await bus.clock.advance(1_000_000);
    await bus.crash();
    expect(jobs.inputs()).toEqual([{ g: "a", n: "now" }]);
    await bus.clock.advance(800_000);
    expect(jobs.inputs()).toEqual([
      { g: "a", n: "now" },
      { g: "a", n: "later" },
    ]);
  });

  test("a dedupe key keeps a second message out while the first is here", async () => {
    const jobs = probe("jobs::run");
    const running = gate();
    jobs.answer = () => running.promise;
    await using bus = await testBus([jobs.worker], { config });
    const first = await put(bus, "many", { n: 1 }, { dedupe_key: "k" });
    expect(await put(bus, "many", { n: 2 }, { dedupe_key: "k" })).toEqual(first);
    running.open();
    await until(() => jobs.seen.length === 1);
    await bus.settle();
    await put(bus, "many", { n: 3 }, { dedupe_key: "k" });
    await until(() => jobs.seen.length === 2);
    expect(jobs.inputs()).toEqual([{ n: 1 }, { n: 3 }]);
  });

  test("ack in a transaction settles the delivery; what the handler does afterwards does not matter", async () => {
    await using bus = await testBus([], { config });
    const iii = await bus.connect("stepper");
    const codes: unknown[] = [];
    let runs = 0;
    iii.registerFunction("jobs::run", async (input) => {
      runs += 1;
      const { n } = input as { n: number };
      await iii.trigger(stateTransact, {
        writes: [{ scope: "s", key: "n", value: n }],
        enqueue: n < 3 ? [{ queue: "groups", function_id: "jobs::run", data: { g: "a", n: n + 1 }, dedupe_key: "step" }] : [],
        ack: true,
      });
      await iii.trigger(stateTransact, { ack: true }).catch((thrown: BusError) => codes.push(thrown.code));
      fail();
    });
    await put(bus, "groups", { g: "a", n: 1 }, { dedupe_key: "step" });
    await until(() => runs === 3);
    await bus.clock.advance(60_000);
    expect(runs).toBe(3);
    expect(codes).toEqual(["fenced", "fenced", "fenced"]);
    expect(await bus.call("state::get", { scope: "s", key: "n" })).toBe(3);
    expect(await bus.call(queueTopicStats, { queue: "groups" })).toMatchObject({ depth: 0, dlq_depth: 0 });
  });

  test("what ran when the engine died runs again, and its old handler cannot acknowledge it", async () => {
    await using bus = await testBus([], { config });
    const iii = await bus.connect("survivor");
    const codes: unknown[] = [];
    const waits = gate();
    let runs = 0;
    iii.registerFunction("jobs::run", async () => {
      runs += 1;
      if (runs > 1) return;
      await waits.promise;
      await iii.trigger(stateTransact, { ack: true }).catch((thrown: BusError) => codes.push(thrown.code));
    });
    await put(bus, "many", { n: 1 });
    await until(() => runs === 1);
    await bus.crash();
    waits.open();
    await until(() => codes.length === 1);
    expect(codes).toEqual(["fenced"]);
    await until(() => runs === 2);
    await bus.settle();
    expect(await bus.call(queueTopicStats, { queue: "many" })).toMatchObject({ depth: 0 });
  });

  test("the mark of an agent stays on its message", async () => {
    const jobs = probe("jobs::run");
    await using bus = await testBus([jobs.worker], { config });
    await bus.call("jobs::run", { n: 1 }, { origin: "agent", action: { type: "enqueue", queue: "many" } });
    await put(bus, "many", { n: 2 });
    await until(() => jobs.seen.length === 2);
    expect(jobs.seen.map(({ call }) => call.context?.origin)).toEqual(["agent", "worker"]);
  });

  test("a message is delivered under the trace and baggage of its sender, without the marks of the sending span", async () => {
    const jobs = probe("jobs::run");
    await using bus = await testBus([jobs.worker], { config });
    const trace = "0af7651916cd43dd8448eb211c80319c";
    await bus.call(
      "jobs::run",
      { n: 1 },
      {
        action: { type: "enqueue", queue: "many" },
        traceparent: `00-${trace}-b7ad6b7169203331-01`,
        baggage: { "iii.session.id": "s1", "iii.tag.hidden": "1" },
      },
    );
    await until(() => jobs.seen.length === 1);
    expect(jobs.seen[0]?.call.traceparent).toContain(trace);
    expect(jobs.seen[0]?.call.baggage).toContain("iii.session.id=s1");
    expect(jobs.seen[0]?.call.baggage).not.toContain("iii.tag.hidden");
  });

  test.each([
    ["iii::durable::publish", { topic: "", data: 1 }, "topic_not_set"],
    ["iii::queue::redrive", {}, "queue_not_set"],
    ["iii::queue::redrive", { queue: "" }, "queue_not_set"],
    ["iii::queue::redrive_message", { queue: "many", message_id: "" }, "message_id_not_set"],
    ["iii::queue::discard_message", { queue: "many", message_id: "" }, "message_id_not_set"],
  ])("%s %j is %s", async (id, payload, code) => {
    await using bus = await testBus([], { config });
    await expect(bus.call(id, payload)).rejects.toMatchObject({ code });
  });

  test("durable topics: kept before there is a subscriber, one copy per function, and while it is away", async () => {
    await using bus = await testBus([], { config });
    await bus.call("iii::durable::publish", { topic: "t", data: { n: 0 } });
    const got: string[] = [];
    const join = async (id: string) => {
      const iii = await bus.connect(id);
      iii.registerFunction(id, (input) => got.push(`${id} ${(input as { n: number }).n}`));
      iii.registerTrigger({ type: "durable:subscriber", function_id: id, config: { topic: "t" } });
      await bus.settle();
      return iii;
    };
    const a = await join("a::on");
    await until(() => got.length === 1);
    const consumers = (await bus.store.load()).filter(({ space }) => space === "consumers");
    expect(consumers.map(({ key }) => key)).toEqual(['__topic:["t","a::on"]']);
    await join("b::on");
    await bus.call("iii::durable::publish", { topic: "t", data: { n: 1 } });
    await until(() => got.length === 3);
    await a.close();
    await bus.call("iii::durable::publish", { topic: "t", data: { n: 2 } });
    await until(() => got.length === 4);
    await join("a::on");
    await until(() => got.length === 5);
    expect(got.toSorted()).toEqual(["a::on 0", "a::on 1", "a::on 2", "b::on 1", "b::on 2"]);
    expect(await bus.call("engine::queue::list_topics", {})).toContainEqual({ name: "t", broker_type: "builtin", subscriber_count: 2 });
  });

  type Step = { type: "put"; g: string; fails: number } | { type: "advance"; ms: number } | { type: "crash" };
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ type: fc.constant("put" as const), g: fc.constantFrom("a", "b", "c"), fails: fc.nat(4) }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 400 }) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("crash" as const) }) },
  );
  type Sent = { g: string; n: number };

  /** Plays a history and says what was sent, started, done, dead and left over. */
  async function play(steps: readonly Step[]) {
    const jobs = probe("jobs::run");
    const failures: number[] = [];
    const sent: Sent[] = [];
    const done = new Set<number>();
    jobs.answer = (input) => {
      const { n } = input as Sent;
      failures[n] = (failures[n] ?? 0) - 1;
      if (failures[n] >= 0) fail();
      return done.add(n).size;
    };
    await using bus = await testBus([jobs.worker], { config });
    const act = (next: Step): Promise<unknown> => {
      if (next.type === "advance") return bus.clock.advance(next.ms);
      if (next.type === "crash") return bus.crash();
      const job = { g: next.g, n: failures.push(next.fails) - 1 };
      sent.push(job);
      return put(bus, "groups", job);
    };
    for (const next of steps) await act(next);
    await bus.clock.advance(20_000);
    const { depth, dlq_depth } = await bus.call(queueTopicStats, { queue: "groups" });
    return { sent, started: jobs.inputs<Sent>(), done, depth, dlq_depth };
  }

  test("whatever fails and whenever the engine dies: enqueued = done + dead + waiting, and groups start in order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { sent, started, done, depth, dlq_depth } = await play(steps);
        expect(done.size + dlq_depth + depth).toBe(sent.length);
        for (const group of ["a", "b", "c"]) {
          const firsts = [...new Set(started.filter(({ g }) => g === group).map(({ n }) => n))];
          expect(firsts).toEqual(firsts.toSorted((left, right) => left - right));
        }
      }),
      { numRuns: 20 },
    );
  });
});
