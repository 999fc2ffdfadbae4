// The core alone: tables and router, fed with frames, judged by their effects.
import { decodeFrame, encodeFrame, type Principal } from "@iii/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Access } from "../src/core/access.ts";
import { withBaggage } from "../src/core/baggage.ts";
import type { Core } from "../src/core/core.ts";
import type { Effect } from "../src/core/effects.ts";
import { expire } from "../src/core/endings.ts";
import { Functions } from "../src/core/functions.ts";
import { connect, disconnect } from "../src/core/lifecycle.ts";
import { MARK_GRACE_MS, Marks } from "../src/core/marks.ts";
import { Invocations } from "../src/core/pending.ts";
import type { EntryRights } from "../src/core/rights.ts";
import { route } from "../src/core/router.ts";
import { Triggers } from "../src/core/triggers.ts";

/** May do everything; takes the agent's mark as a tool does. */
const TOOL = { kind: "entry", name: "tool" } as const;
/** … and as the control plane does: not. */
const CONTROL = { kind: "entry", name: "control" } as const;
const ALL = { provides: ["*"], calls: ["*"] };
const entries = new Map<string, EntryRights>([
  ["tool", { ...ALL, control: false }],
  ["control", ALL],
]);
const NOW = 1_000_000;
/** Dates less monotonic times. */
const DATES = 5_000_000;
const text = (raw: Uint8Array | string | undefined) => (raw instanceof Uint8Array ? new TextDecoder().decode(raw) : raw);

type Sent = Record<string, unknown> & { payload?: unknown };

/** A core with named connections; frames go in, frames and other effects come out. */
class Rig {
  readonly core: Core;
  readonly names = new Map<string, string>();
  effects: Effect[] = [];
  now = NOW;
  #next = 0;

  constructor(limits: Partial<Core["limits"]> = {}) {
    this.core = {
      functions: new Functions(),
      triggers: new Triggers(),
      connections: new Map(),
      invocations: new Invocations(),
      access: new Access({ entries }),
      marks: new Marks(),
      now: () => this.now,
      limits: {
        max_in_flight: 100,
        max_depth: 5,
        max_frame_bytes: 1_000_000,
        call_timeout_ms: 60_000,
        max_functions: 10,
        max_triggers: 10,
        cancel_grace_ms: 5_000,
        overdue_ms: 30_000,
        ...limits,
      },
      dateOf: (at) => at + DATES,
      draining: false,
      uuid: () => {
        this.#next += 1;
        return `id-${this.#next}`;
      },
    };
  }

  join(kind: "worker" | "browser" = "worker", principal: Principal = TOOL): string {
    return connect(this.core, { kind, remote: undefined, principal }, NOW, this.effects);
  }

  leave(id: string): void {
    disconnect(this.core, id, this.effects);
  }

  send(from: string, head: object, data?: unknown, now = NOW): void {
    const conn = this.core.connections.get(from);
    if (conn === undefined) throw new Error("no such connection");
    const key = (head as { type?: string }).type === "invocationresult" ? "result" : "data";
    const payload = data === undefined ? undefined : JSON.stringify(data);
    route(this.core, conn, encodeFrame(head, key, payload), now, this.effects);
  }

  raw(from: string, frame: string): void {
    const conn = this.core.connections.get(from);
    if (conn !== undefined) route(this.core, conn, new TextEncoder().encode(frame), NOW, this.effects);
  }

  /** Frames that went to a connection since the last look. */
  take(to: string): Sent[] {
    const mine = this.effects.filter((effect) => effect.type === "send" && effect.conn === to);
    this.effects = this.effects.filter((effect) => !mine.includes(effect));
    return mine.flatMap((effect) => {
      if (effect.type !== "send") return [];
      const { head, payload } = decodeFrame(encodeFrame(effect.head, effect.payloadKey, effect.payload, effect.splice));
      return [{ ...head, ...(payload === undefined ? {} : { payload: JSON.parse(text(payload) ?? "") }) }];
    });
  }

  clear(): void {
    this.effects = [];
  }
}

function pair(limits: Partial<Core["limits"]> = {}) {
  const rig = new Rig(limits);
  const caller = rig.join();
  const worker = rig.join();
  rig.send(worker, { type: "registerfunction", id: "a::b" });
  rig.clear();
  return { rig, caller, worker };
}

interface PlayStep {
  do: "call" | "answer" | "leave" | "expire";
  from: number;
  to: number;
}

/** Three connections that serve one function each, and whatever happens between them. */
class Play {
  readonly rig = new Rig();
  readonly answers = new Map<string, number>();
  readonly #running: unknown[] = [];
  readonly #conns: string[];
  #calls = 0;
  #now = NOW;

  constructor() {
    this.#conns = [0, 1, 2].map((n) => {
      const id = this.rig.join();
      this.rig.send(id, { type: "registerfunction", id: `f::${n}` });
      return id;
    });
  }

  step({ do: what, from, to }: PlayStep): void {
    const conn = this.#conns[from] ?? "";
    if (!this.rig.core.connections.has(conn)) return;
    const does = {
      call: () => {
        this.#calls += 1;
        const head = { type: "invokefunction", invocation_id: `c${this.#calls}`, function_id: `f::${to}`, timeout_ms: 10 };
        this.rig.send(conn, head, {}, this.#now);
      },
      answer: () => this.rig.send(conn, { type: "invocationresult", invocation_id: this.#running[to] ?? "x", function_id: "" }, 1),
      leave: () => this.rig.leave(conn),
      expire: () => {
        this.#now += 20;
        expire(this.rig.core, this.#now, this.rig.effects);
      },
    };
    does[what]();
    this.#look();
  }

  end(): void {
    for (const conn of this.#conns) this.rig.leave(conn);
    this.#look();
  }

  #look(): void {
    for (const frame of this.#conns.flatMap((conn) => this.rig.take(conn))) {
      const id = String(frame["invocation_id"]);
      if (frame["type"] === "invokefunction") this.#running.push(id);
      if (frame["type"] === "invocationresult") this.answers.set(id, (this.answers.get(id) ?? 0) + 1);
    }
  }
}

describe("calls", () => {
  test("a call reaches the owner with an id of the engine's, the caller spliced in, and the answer carries the caller's id", () => {
    const { rig, caller, worker } = pair();
    rig.send(
      caller,
      { type: "invokefunction", invocation_id: "mine", function_id: "a::b", metadata: { m: 1 } },
      { x: 1, _caller_worker_id: "forged" },
    );
    const [call] = rig.take(worker);
    expect(call).toMatchObject({
      type: "invokefunction",
      function_id: "a::b",
      metadata: { m: 1 },
      payload: { x: 1, _caller_worker_id: caller },
      context: { caller, origin: "worker", depth: 0, deadline_ms: DATES + NOW + 60_000, remaining_ms: 60_000 },
    });
    expect(call?.["invocation_id"]).not.toBe("mine");
    rig.send(worker, { type: "invocationresult", invocation_id: call?.["invocation_id"], function_id: "a::b" }, { y: 2 });
    expect(rig.take(caller)).toEqual([{ type: "invocationresult", invocation_id: "mine", function_id: "a::b", payload: { y: 2 } }]);
    expect(rig.core.invocations.size).toBe(0);
  });

  test("two callers with the same id get each their own answer", () => {
    const { rig, caller, worker } = pair();
    const other = rig.join();
    rig.clear();
    for (const [from, n] of [
      [caller, 1],
      [other, 2],
    ] as const) {
      rig.send(from, { type: "invokefunction", invocation_id: "same", function_id: "a::b" }, { n });
    }
    for (const call of rig.take(worker).toReversed()) {
      rig.send(
        worker,
        { type: "invocationresult", invocation_id: call["invocation_id"], function_id: "a::b" },
        (call.payload as { n: number }).n,
      );
    }
    expect(rig.take(caller).map((frame) => frame.payload)).toEqual([1]);
    expect(rig.take(other).map((frame) => frame.payload)).toEqual([2]);
  });

  test("only the executor can answer, and only once", () => {
    const { rig, caller, worker } = pair();
    const thief = rig.join();
    rig.send(caller, { type: "invokefunction", invocation_id: "c", function_id: "a::b" }, {});
    const [call] = rig.take(worker);
    const answer = { type: "invocationresult", invocation_id: call?.["invocation_id"], function_id: "a::b" };
    rig.take(caller);
    rig.send(thief, answer, "forged");
    expect(rig.take(caller)).toEqual([]);
    rig.send(worker, answer, "real");
    rig.send(worker, answer, "again");
    expect(rig.take(caller).map((frame) => frame.payload)).toEqual(["real"]);
  });

  test.each([
    ["null is no result", { result: null }, { payload: undefined, error: undefined }],
    ["a missing result is no result", {}, { payload: undefined, error: undefined }],
    [
      "an error wins over a result",
      { result: 1, error: { code: "x", message: "m" } },
      { payload: undefined, error: { code: "x", message: "m" } },
    ],
    [
      "an error without a code is a failure all the same: the executor has answered",
      { error: { message: "m" } },
      { payload: undefined, error: { code: "invocation_failed", message: "m" } },
    ],
    ["and so is one that is only text", { error: "m" }, { payload: undefined, error: { code: "invocation_failed", message: "m" } }],
  ])("%s", (_title, body, expected) => {
    const { rig, caller, worker } = pair();
    rig.send(caller, { type: "invokefunction", invocation_id: "c", function_id: "a::b" });
    const [call] = rig.take(worker);
    expect(call?.payload).toBeNull();
    rig.raw(worker, JSON.stringify({ type: "invocationresult", invocation_id: call?.["invocation_id"], function_id: "a::b", ...body }));
    const [answer] = rig.take(caller);
    expect(answer?.payload).toBe(expected.payload);
    expect(answer?.["error"]).toEqual(expected.error);
  });

  test("an unknown id, an unreadable frame and a bad action are answered where an id can be read; the connection stays", () => {
    const { rig, caller } = pair();
    rig.send(caller, { type: "invokefunction", invocation_id: "1", function_id: "no::body" }, {});
    rig.raw(caller, '{"type":"invokefunction","invocation_id":"2","function_id":"a::b","function_id":"c","data":{}}');
    rig.raw(caller, '{"type":"invokefunction","invocation_id":"3"}');
    rig.raw(caller, '{"type":"invokefunction","invocation_id":"4","function_id":"a::b","action":{"type":"later"}}');
    rig.raw(caller, "not json");
    rig.raw(caller, '{"type":"mystery"}');
    expect(rig.take(caller).map((frame) => [frame["invocation_id"], (frame["error"] as { code: string }).code])).toEqual([
      ["1", "function_not_found"],
      ["2", "invalid_frame"],
      ["3", "invalid_frame"],
      ["4", "invalid_frame"],
    ]);
    expect(rig.effects.filter((effect) => effect.type === "note" && effect.level === "warn")).toHaveLength(1);
    expect(rig.core.connections.has(caller)).toBe(true);
  });

  test("a call past its deadline ends with TIMEOUT once, its executor is told, and a late answer is ignored", () => {
    const { rig, caller, worker } = pair();
    rig.send(caller, { type: "invokefunction", invocation_id: "c", function_id: "a::b", timeout_ms: 50 }, {});
    rig.send(caller, { type: "invokefunction", invocation_id: "forever", function_id: "a::b", timeout_ms: 0 }, {});
    const [call] = rig.take(worker);
    expire(rig.core, NOW + 49, rig.effects);
    expect(rig.take(caller)).toEqual([]);
    expire(rig.core, NOW + 50, rig.effects);
    expect(rig.take(caller)).toMatchObject([{ invocation_id: "c", error: { code: "TIMEOUT" } }]);
    expect(rig.take(worker)).toEqual([{ type: "cancel", invocation_id: call?.["invocation_id"] }]);
    rig.send(worker, { type: "invocationresult", invocation_id: call?.["invocation_id"], function_id: "a::b" }, 1);
    expire(rig.core, NOW + 10_000_000, rig.effects);
    expect(rig.take(caller)).toEqual([]);
  });

  test("a nested call cannot outlive the call it is made for, and counts its depth", () => {
    const { rig, caller, worker } = pair();
    rig.send(worker, { type: "registerfunction", id: "in::ner" });
    rig.send(caller, { type: "invokefunction", invocation_id: "c", function_id: "a::b", timeout_ms: 500 }, {});
    let parent = rig.take(worker)[0]?.["invocation_id"];
    for (let depth = 1; depth <= 5; depth += 1) {
      rig.send(worker, { type: "invokefunction", invocation_id: `n${depth}`, function_id: "in::ner", parent, timeout_ms: 9_999 }, {});
      const [call] = rig.take(worker);
      expect(call?.["context"]).toMatchObject({ depth, deadline_ms: DATES + NOW + 500, remaining_ms: 500 });
      parent = call?.["invocation_id"];
    }
    rig.send(worker, { type: "invokefunction", invocation_id: "n6", function_id: "in::ner", parent }, {});
    expect(rig.take(worker)).toMatchObject([{ invocation_id: "n6", error: { code: "depth_exceeded" } }]);
  });

  test("cancel goes to the executor; one that does not answer in time ends as cancelled", () => {
    const { rig, caller, worker } = pair();
    rig.send(caller, { type: "invokefunction", invocation_id: "c", function_id: "a::b" }, {});
    const [call] = rig.take(worker);
    rig.send(caller, { type: "cancel", invocation_id: "c" });
    rig.send(caller, { type: "cancel", invocation_id: "unknown" });
    expect(rig.take(worker)).toEqual([{ type: "cancel", invocation_id: call?.["invocation_id"] }]);
    expire(rig.core, NOW + 4_999, rig.effects);
    expect(rig.take(caller)).toEqual([]);
    expire(rig.core, NOW + 5_000, rig.effects);
    expect(rig.take(caller)).toMatchObject([{ error: { code: "cancelled" } }]);
    expect(rig.take(worker)).toEqual([]);
  });

  test("calls in flight are bounded per connection", () => {
    const { rig, caller } = pair({ max_in_flight: 2 });
    for (const id of ["1", "2", "3"]) rig.send(caller, { type: "invokefunction", invocation_id: id, function_id: "a::b" }, {});
    expect(rig.take(caller)).toMatchObject([{ invocation_id: "3", error: { code: "too_many_in_flight" } }]);
  });

  test("an enqueue action becomes work for the queue, with the untouched data, the mark and a receipt", () => {
    const { rig, caller } = pair();
    rig.core.functions.addBuiltin("engine::queue::enqueue");
    const action = { type: "enqueue", queue: "q", delay_ms: 5 };
    rig.send(
      caller,
      { type: "invokefunction", invocation_id: "c", function_id: "a::b", action, origin: "agent", traceparent: "t" },
      { n: 1 },
    );
    const run = rig.effects.find((effect) => effect.type === "run");
    expect(run?.type === "run" && JSON.parse(text(run.run.payload) ?? "")).toMatchObject({
      queue: "q",
      function_id: "a::b",
      data: { n: 1 },
      origin: "agent",
      traceparent: "t",
      baggage: null,
      delay_ms: 5,
      messageReceiptId: expect.any(String),
    });
  });
});

describe("owners", () => {
  test("the newest live owner serves, and the one before it does again when it leaves", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3), fc.constantFrom("claim", "release")), { maxLength: 40 }), (steps) => {
        const functions = new Functions();
        let model: string[] = [];
        for (const [n, step] of steps) {
          const conn = `c${n}`;
          model = model.filter((other) => other !== conn);
          if (step === "claim") model.push(conn);
          if (step === "claim")
            functions.claim(conn, {
              id: "f",
              description: undefined,
              metadata: undefined,
              request_format: undefined,
              response_format: undefined,
            });
          else functions.release(conn, "f");
          expect(functions.serving("f")?.conn).toBe(model.at(-1));
          expect(functions.others("f")).toEqual(model.slice(0, -1));
        }
      }),
    );
  });

  test("a built-in id cannot be claimed; the claim is visible and the connection stays", () => {
    const { rig, worker } = pair();
    rig.core.functions.addBuiltin("state::get");
    rig.send(worker, { type: "registerfunction", id: "state::get" });
    expect(rig.core.functions.serving("state::get")).toBeUndefined();
    expect(rig.core.functions.others("state::get")).toEqual([worker]);
    expect(rig.effects).toContainEqual(
      expect.objectContaining({ type: "note", fields: expect.objectContaining({ code: "function_owned" }) }),
    );
    rig.leave(worker);
    expect(rig.core.functions.isBuiltin("state::get")).toBe(true);
  });

  test("trigger types are bounded per connection", () => {
    const rig = new Rig({ max_triggers: 2 });
    const conn = rig.join();
    for (const id of ["a", "b", "c", "b"]) rig.send(conn, { type: "registertriggertype", id, description: "" });
    expect([...rig.core.triggers.provided()].map(({ info }) => info.id)).toEqual(["a", "b"]);
  });

  test("registrations are bounded per connection", () => {
    const { rig, worker } = pair();
    for (let n = 0; n < 20; n += 1) rig.send(worker, { type: "registerfunction", id: `f::${n}` });
    expect(rig.core.connections.get(worker)?.functions.size).toBe(10);
  });
});

describe("disconnects", () => {
  test("waiting callers hear it at once, executors are told to stop, and everything the connection held is given back once", () => {
    const { rig, caller, worker } = pair();
    const third = rig.join();
    rig.send(third, { type: "registertriggertype", id: "custom", description: "" });
    rig.send(worker, { type: "registertrigger", id: "t1", trigger_type: "custom", function_id: "a::b", config: { c: 1 } });
    expect(rig.take(third).at(-1)).toMatchObject({ type: "registertrigger", id: "t1", config: { c: 1 } });
    rig.send(caller, { type: "invokefunction", invocation_id: "c", function_id: "a::b" }, {});
    rig.take(worker);
    rig.clear();
    rig.leave(worker);
    rig.leave(worker);
    expect(rig.take(caller)).toMatchObject([{ invocation_id: "c", error: { code: "invocation_stopped" } }]);
    expect(rig.take(third)).toEqual([{ type: "unregistertrigger", id: "t1", trigger_type: "custom" }]);
    expect(rig.effects.filter((effect) => effect.type === "worker")).toEqual([
      { type: "worker", event: "worker_disconnected", worker_id: worker },
    ]);
    expect(rig.core.functions.has("a::b")).toBe(false);
  });

  test("the caller's end cancels what it asked for", () => {
    const { rig, caller, worker } = pair();
    rig.send(caller, { type: "invokefunction", invocation_id: "c", function_id: "a::b" }, {});
    const [call] = rig.take(worker);
    rig.leave(caller);
    expect(rig.take(worker)).toEqual([{ type: "cancel", invocation_id: call?.["invocation_id"] }]);
    expect(rig.core.invocations.size).toBe(0);
    expect(rig.core.connections.get(worker)?.running.size).toBe(0);
  });

  test("a connection is told its id and how large a message may be", () => {
    const rig = new Rig({ max_frame_bytes: 4_096 });
    const conn = rig.join();
    expect(rig.take(conn)).toMatchObject([{ type: "workerregistered", worker_id: conn, max_frame_bytes: 4_096 }]);
  });

  test("a reattach with the right token ends the old connection first; a wrong one does nothing; a token works once", () => {
    const { rig, worker } = pair();
    const token = rig.core.connections.get(worker)?.token;
    const back = rig.join();
    rig.send(back, { type: "reattach", previous_worker_id: worker, reattach_token: "wrong" });
    expect(rig.core.connections.has(worker)).toBe(true);
    rig.send(back, { type: "reattach", previous_worker_id: worker, reattach_token: token });
    expect(rig.core.connections.has(worker)).toBe(false);
    expect(rig.effects).toContainEqual({ type: "drop", conn: worker, reason: "reattached" });
    rig.clear();
    rig.send(back, { type: "reattach", previous_worker_id: worker, reattach_token: token });
    expect(rig.effects.filter((effect) => effect.type === "drop")).toEqual([]);
  });

  test("whatever calls, answers and disconnects happen, each call is answered at most once and tables end empty", () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("call" as const), from: fc.nat(2), to: fc.nat(2) }),
      fc.record({ do: fc.constant("answer" as const), from: fc.nat(2), to: fc.nat(20) }),
      fc.record({ do: fc.constant("leave" as const), from: fc.nat(2), to: fc.constant(0) }),
      fc.record({ do: fc.constant("expire" as const), from: fc.nat(2), to: fc.constant(0) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const play = new Play();
        for (const one of steps) play.step(one);
        play.end();
        expect([...play.answers.values()].every((count) => count === 1)).toBe(true);
        expect(play.rig.core.invocations.size).toBe(0);
        expect(play.rig.core.functions.has("f::0")).toBe(false);
      }),
      { numRuns: 200 },
    );
  });
});

describe("triggers", () => {
  test("a binding waits for its type, moves with its provider under the same id, and only its owner unbinds it", () => {
    const { rig, caller, worker } = pair();
    rig.send(worker, { type: "registertrigger", id: "t", trigger_type: "late", function_id: "a::b" });
    expect(rig.take(worker)).toEqual([]);
    const provider = rig.join();
    rig.send(provider, { type: "registertriggertype", id: "late", description: "d" });
    expect(rig.take(provider).filter((frame) => frame["type"] === "registertrigger")).toMatchObject([
      { id: "t", function_id: "a::b", config: null },
    ]);
    rig.leave(provider);
    const next = rig.join();
    rig.send(next, { type: "registertriggertype", id: "late", description: "d" });
    expect(rig.take(next).filter((frame) => frame["type"] === "registertrigger")).toMatchObject([{ id: "t" }]);
    rig.send(caller, { type: "unregistertrigger", id: "t" });
    expect(rig.take(next)).toEqual([]);
    rig.send(worker, { type: "unregistertrigger", id: "t" });
    expect(rig.take(next)).toEqual([{ type: "unregistertrigger", id: "t", trigger_type: "late" }]);
  });

  test("a provider's refusal parks the binding and reaches its owner; others cannot speak for the provider", () => {
    const { rig, caller, worker } = pair();
    const provider = rig.join();
    rig.send(provider, { type: "registertriggertype", id: "x", description: "d" });
    rig.send(worker, { type: "registertrigger", id: "t", trigger_type: "x", function_id: "a::b", config: {} });
    rig.clear();
    const refusal = {
      type: "triggerregistrationresult",
      id: "t",
      trigger_type: "x",
      function_id: "a::b",
      error: { code: "no", message: "m" },
    };
    rig.send(caller, refusal);
    expect(rig.take(worker)).toEqual([]);
    rig.send(provider, refusal);
    expect(rig.take(worker)).toEqual([refusal]);
    expect([...rig.core.triggers.bindings()]).toMatchObject([{ active: false }]);
  });

  test("the same binding from a client that came back takes its ghost's place; another's id is refused", () => {
    const { rig, worker, caller } = pair();
    rig.send(worker, { type: "registertrigger", id: "t", trigger_type: "x", function_id: "a::b", config: {} });
    rig.send(caller, { type: "registertrigger", id: "t", trigger_type: "x", function_id: "other", config: {} });
    expect(rig.take(caller)).toMatchObject([{ type: "triggerregistrationresult", error: { code: "trigger_registration_failed" } }]);
    rig.send(caller, { type: "registertrigger", id: "t", trigger_type: "x", function_id: "a::b", config: {} });
    expect(rig.core.triggers.get("t")?.worker_id).toBe(caller);
    rig.leave(worker);
    expect(rig.core.triggers.get("t")).toBeDefined();
  });
});

describe("the wall", () => {
  /** A tool that runs an agent's call, and what happens to the calls it makes then. */
  function tool() {
    const rig = new Rig();
    const orchestrator = rig.join("worker", CONTROL);
    const worker = rig.join();
    rig.send(worker, { type: "registerfunction", id: "tool::run" });
    rig.send(orchestrator, { type: "registerfunction", id: "approval::resolve" });
    rig.send(orchestrator, { type: "registerfunction", id: "free::fn" });
    rig.clear();
    rig.send(orchestrator, { type: "invokefunction", invocation_id: "o", function_id: "tool::run", origin: "agent" }, {});
    const id = rig.take(worker)[0]?.["invocation_id"];
    const ask = (function_id: string, extra: object = {}) => {
      rig.clear();
      rig.send(worker, { type: "invokefunction", invocation_id: "n", function_id, ...extra }, {});
      const error = rig.take(worker).find((frame) => frame["invocation_id"] === "n")?.["error"] as { code: string } | undefined;
      return error?.code;
    };
    return { rig, orchestrator, worker, id, ask };
  }

  test("the mark is inherited by parent, and without a parent by the connection that runs an agent's call", () => {
    const { rig, orchestrator, id, ask } = tool();
    expect(ask("approval::resolve", { parent: id })).toBe("FORBIDDEN");
    expect(ask("approval::resolve")).toBe("FORBIDDEN");
    expect(ask("approval::resolve", { parent: "invented" })).toBe("FORBIDDEN");
    expect(ask("approval::missing", { parent: id })).toBe("FORBIDDEN");
    ask("free::fn");
    expect(rig.take(orchestrator)[0]?.["context"]).toMatchObject({ origin: "agent" });
  });

  test("a call under an unmarked parent does not inherit from its neighbours; without one the mark stays for a time after the answer", () => {
    const { rig, orchestrator, worker, id, ask } = tool();
    rig.send(orchestrator, { type: "invokefunction", invocation_id: "p", function_id: "tool::run" }, {});
    const plain = rig.take(worker)[0]?.["invocation_id"];
    expect(ask("approval::resolve", { parent: plain })).toBeUndefined();
    rig.send(worker, { type: "invocationresult", invocation_id: id, function_id: "tool::run" }, 1);
    expect(ask("approval::resolve")).toBe("FORBIDDEN");
    rig.now += MARK_GRACE_MS - 1;
    expect(ask("approval::resolve")).toBe("FORBIDDEN");
    rig.now += 1;
    expect(ask("approval::resolve")).toBeUndefined();
  });

  test("a tool that runs on past its deadline keeps the mark", () => {
    const { rig, id, ask } = tool();
    expire(rig.core, NOW + 10_000_000, rig.effects);
    expect(ask("approval::resolve", { parent: id })).toBe("FORBIDDEN");
    expect(ask("approval::resolve")).toBe("FORBIDDEN");
  });

  test("a tool cannot have a human-only function run later by a trigger or a queue", () => {
    const { rig, worker, ask } = tool();
    rig.core.functions.addBuiltin("engine::queue::enqueue");
    expect(ask("approval::resolve", { action: { type: "enqueue", queue: "q" } })).toBe("FORBIDDEN");
    rig.send(worker, { type: "registertrigger", id: "t", trigger_type: "state", function_id: "approval::resolve", config: {} });
    expect(rig.take(worker)).toMatchObject([{ type: "triggerregistrationresult", error: { code: "FORBIDDEN" } }]);
  });

  test.each([{ condition_function_id: "approval::resolve" }, { middleware_function_ids: ["free::fn", "approval::resolve"] }])(
    "nor as what a binding's config names: %o",
    (config) => {
      const { rig, worker } = tool();
      rig.clear();
      rig.send(worker, { type: "registertrigger", id: "t", trigger_type: "http", function_id: "free::fn", config });
      expect(rig.take(worker)).toMatchObject([{ type: "triggerregistrationresult", error: { code: "FORBIDDEN" } }]);
    },
  );

  test("nor have a raw write run later by a trigger, which fires without the mark", () => {
    const { rig, worker } = tool();
    rig.clear();
    rig.send(worker, { type: "registertrigger", id: "t", trigger_type: "subscribe", function_id: "state::set", config: { topic: "x" } });
    expect(rig.take(worker)).toMatchObject([{ type: "triggerregistrationresult", error: { code: "FORBIDDEN" } }]);
  });

  test.each([
    ["state", { scope: "approvals" }],
    ["state", {}],
    ["state", { scope: "notes", durable: "turn-orchestrator" }],
    ["stream", { stream_name: "agent::events" }],
  ])("nor watch by a %s trigger what others own, or take over a durable consumer: %o", (trigger_type, config) => {
    const { rig, worker } = tool();
    const access = new Access({ entries });
    const nested = { origin: "agent", kind: "worker", direct: false, principal: TOOL } as const;
    const wanted = { trigger_type, function_id: "free::fn", config };
    expect(access.refuseInput("engine::register_trigger", wanted, nested)?.code).toBe("FORBIDDEN");
    rig.clear();
    rig.send(worker, { type: "registertrigger", id: "t", ...wanted });
    expect(rig.take(worker)).toMatchObject([{ type: "triggerregistrationresult", error: { code: "FORBIDDEN" } }]);
    expect(access.refuseInput("engine::register_trigger", { ...wanted, trigger_type: "state", config: { scope: "notes" } }, nested)).toBe(
      undefined,
    );
  });

  test("raw writes are refused to the agent itself and allowed to its tools, but on the scopes of others", () => {
    const access = new Access({ entries });
    const agent = { origin: "agent", kind: "worker", principal: TOOL } as const;
    for (const id of [
      "state::set",
      "state::update",
      "state::delete",
      "state::transact",
      "stream::set",
      "stream::send",
      "publish",
      "iii::durable::publish",
      "engine::register_trigger",
      "engine::workers::register",
    ]) {
      expect(access.refuseCall(id, { ...agent, direct: true })?.code, id).toBe("FORBIDDEN");
      expect(access.refuseCall(id, { ...agent, direct: false }), id).toBeUndefined();
    }
    expect(access.refuseCall("state::get", { ...agent, direct: true })).toBeUndefined();
    const nested = { ...agent, direct: false };
    expect(access.refuseInput("state::set", { scope: "notes", key: "k" }, nested)).toBeUndefined();
    for (const scope of [
      "session",
      "session_index",
      "active_turns",
      "approvals",
      "budgets",
      "vault",
      "session_tree:s1",
      "session_tree_meta",
      "models",
      "agent::events",
    ]) {
      expect(access.refuseInput("state::set", { scope, key: "k" }, nested)?.code, scope).toBe("FORBIDDEN");
      expect(access.refuseInput("state::transact", { writes: [{ scope: "own" }, { scope }] }, nested)?.code, scope).toBe("FORBIDDEN");
    }
    expect(access.refuseInput("state::transact", { enqueue: [{ function_id: "turn::step" }] }, nested)?.code).toBe("FORBIDDEN");
    expect(
      access.refuseInput(
        "state::transact",
        { writes: [{ scope: "session" }] },
        { origin: "worker", kind: "worker", direct: false, principal: TOOL },
      ),
    ).toBeUndefined();
  });

  test("a browser reaches no credential, directly or later", () => {
    const access = new Access({ entries });
    const page = { origin: "browser", kind: "browser", direct: false, principal: { kind: "operator", name: "page" } } as const;
    expect(access.refuseCall("auth::get_token", page)?.code).toBe("FORBIDDEN");
    expect(access.refuseCall("auth::set_token", page)).toBeUndefined();
    expect(access.refuseInput("engine::queue::enqueue", { function_id: "auth::get_token" }, page)?.code).toBe("FORBIDDEN");
    expect(access.refuseCall("approval::resolve", page)).toBeUndefined();
  });
});

test("baggage keeps its other entries and holds a key once", () => {
  expect(withBaggage(undefined, "k", "a b")).toBe("k=a%20b");
  expect(withBaggage("x=1;p, k=old,y=2", "k", "new")).toBe("x=1;p,y=2,k=new");
});

test("deadlines fall due in order, whatever order they came in", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 1, maxLength: 80 }),
      fc.integer({ min: 1, max: 1_000 }),
      (times, now) => {
        const table = new Invocations();
        const about = { function_id: "f", caller: null, client_id: undefined, executor: null, origin: "engine", depth: 0 } as const;
        times.forEach((deadline, n) => {
          table.add({
            ...about,
            id: `${n}`,
            parent: undefined,
            traceparent: undefined,
            baggage: undefined,
            deadline,
            lease: false,
            leased: false,
            cancelled: false,
          });
        });
        expect(table.nextDeadline()).toBe(Math.min(...times));
        const due = table.takeDue(now).map((row) => row.deadline);
        expect(due).toEqual(times.filter((at) => at <= now).sort((a, b) => a - b));
      },
    ),
  );
});
