// Who hears what: order per browser, bounds, gaps, and browsers that go away.
import type { AgentEvent } from "@iii/contracts";
import { BusError, type Logger, silentLogger } from "@iii/sdk";
import { describe, expect, test } from "vitest";
import type { SessionPush } from "../src/contract.ts";
import { Fanout, type Missed } from "../src/fanout.ts";
import { Outbox } from "../src/outbox.ts";

const delta = (text: string): AgentEvent => ({
  type: "message_update",
  message_id: "m",
  attempt: 1,
  llm_event: { type: "text_delta", delta: text },
});

function setup(limits = { items: 5, bytes: 100_000 }, log: Logger = silentLogger) {
  const told: string[] = [];
  const work: Promise<void>[] = [];
  const control = {
    fail: undefined as BusError | undefined,
    gate: Promise.resolve(),
    ears: 0,
    missed: Promise.resolve<Missed>({ epoch: "e", seq: 0, gap: false, items: [] }),
  };
  const note = (push: SessionPush) =>
    push.gap ? "gap" : push.event?.type === "message_update" && "delta" in push.event.llm_event ? push.event.llm_event.delta : "?";
  const fanout = new Fanout(
    {
      hear() {
        control.ears += 1;
        return () => {
          control.ears -= 1;
        };
      },
      read: () => control.missed,
      async pushEvent(browser, push) {
        await control.gate;
        if (control.fail) throw control.fail;
        told.push(`${browser} ${push.session_id} ${note(push)}`);
      },
      async pushSessions(browser, { added }) {
        await control.gate;
        if (control.fail) throw control.fail;
        told.push(`${browser} +${added.join(",")}`);
      },
      detach: (run) => void work.push(run()),
    },
    { limits, log },
  );
  const quiet = async () => {
    for (let done = 0; done < work.length; done = work.length) await Promise.all(work);
  };
  return { fanout, told, control, quiet };
}

describe("subscriptions", () => {
  test("events are listened to once, while there is a browser", async () => {
    const { fanout, control, quiet } = setup();
    const ears = [control.ears];
    const note = () => ears.push(control.ears);
    await fanout.subscribe({ browser_id: "a", session_id: "s1" });
    await fanout.subscribe({ browser_id: "b" });
    note();
    fanout.unsubscribe("a", "s1");
    note();
    control.fail = new BusError("function_not_found", "gone");
    fanout.event("s1", delta("x"), {});
    await quiet();
    note();
    await fanout.subscribe({ browser_id: "a" });
    note();
    fanout.unsubscribe("a", null);
    note();
    expect(ears).toEqual([0, 1, 1, 0, 1, 0]);
  });
  test("a browser hears its session, one for all hears everything, once each", async () => {
    const { fanout, told, quiet } = setup();
    await fanout.subscribe({ browser_id: "a", session_id: "s1" });
    await fanout.subscribe({ browser_id: "b" });
    expect(await fanout.subscribe({ browser_id: "b", session_id: "s1" })).toMatchObject({
      ok: true,
      total_browsers: 2,
      seq: 0,
      epoch: "e",
    });
    fanout.event("s1", delta("x"), { seq: 1, epoch: "e" });
    fanout.event("s2", delta("y"), { seq: 1, epoch: "e" });
    fanout.sessionCreated("s3");
    await quiet();
    expect(told.sort()).toEqual(["a s1 x", "b +s3", "b s1 x", "b s2 y"]);
  });
  test("unsubscribing ends it, and the last one removes the browser", async () => {
    const { fanout, told, quiet } = setup();
    await fanout.subscribe({ browser_id: "a", session_id: "s" });
    await fanout.subscribe({ browser_id: "a" });
    fanout.unsubscribe("a", "s");
    expect(fanout.total).toBe(1);
    fanout.unsubscribe("a", null);
    expect(fanout.total).toBe(0);
    fanout.event("s", delta("x"), {});
    await quiet();
    expect(told).toEqual([]);
  });
  test("what was missed comes with the answer, and is not pushed again", async () => {
    const { fanout, told, control, quiet } = setup();
    const reading = Promise.withResolvers<Missed>();
    control.missed = reading.promise;
    const answer = fanout.subscribe({ browser_id: "a", session_id: "s", since: 1, epoch: "e" });
    fanout.event("s", delta("two"), { seq: 2, epoch: "e" });
    fanout.event("s", delta("three"), { seq: 3, epoch: "e" });
    await quiet();
    expect(told).toEqual([]);
    reading.resolve({ epoch: "e", seq: 2, gap: false, items: [{ seq: 2, data: delta("two") }] });
    expect(await answer).toMatchObject({ seq: 2, gap: false, items: [{ seq: 2, event: delta("two") }] });
    await quiet();
    expect(told).toEqual(["a s three"]);
  });
  test("a failed read is the caller's error and holds nothing up", async () => {
    const { fanout, told, control, quiet } = setup();
    control.missed = Promise.reject(new BusError("TIMEOUT", "slow"));
    await expect(fanout.subscribe({ browser_id: "a", session_id: "s" })).rejects.toMatchObject({ code: "TIMEOUT" });
    fanout.event("s", delta("x"), {});
    await quiet();
    expect(told).toEqual(["a s x"]);
  });
});

describe("pushing", () => {
  test("keeps the order, also while a push is under way", async () => {
    const { fanout, told, control, quiet } = setup();
    await fanout.subscribe({ browser_id: "a" });
    const gate = Promise.withResolvers<void>();
    control.gate = gate.promise;
    for (const text of ["1", "2", "3"]) fanout.event("s", delta(text), {});
    gate.resolve();
    await quiet();
    expect(told).toEqual(["a s 1", "a s 2", "a s 3"]);
  });
  test("too much for one browser becomes one gap per session", async () => {
    const { fanout, told, control, quiet } = setup();
    await fanout.subscribe({ browser_id: "a" });
    const gate = Promise.withResolvers<void>();
    control.gate = gate.promise;
    for (let i = 0; i < 7; i += 1) fanout.event(i % 2 ? "s1" : "s2", delta(`${i}`), {});
    gate.resolve();
    await quiet();
    expect(told).toEqual(["a s2 0", "a s1 gap", "a s2 gap"]);
  });
  test("U37 a page that is gone is forgotten at its first event, and nobody is warned of a closed tab", async () => {
    const told: string[] = [];
    const note = (level: string) => () => void told.push(level);
    const log = { ...silentLogger, debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
    const { fanout, control, quiet } = setup(undefined, log);
    await fanout.subscribe({ browser_id: "a" });
    control.fail = new BusError("function_not_found", "gone");
    fanout.sessionCreated("s");
    await quiet();
    expect(fanout.total).toBe(1);
    fanout.event("s", delta("x"), {});
    await quiet();
    expect(fanout.total).toBe(0);
    expect(told).toEqual(["debug"]);
  });
  test("a push that fails leaves a gap; a page that keeps failing is forgotten", async () => {
    const { fanout, told, control, quiet } = setup();
    await fanout.subscribe({ browser_id: "a" });
    control.fail = new BusError("TIMEOUT", "slow");
    fanout.event("s", delta("x"), {});
    await quiet();
    expect([told, fanout.total]).toEqual([[], 0]);
  });
});

describe("an outbox", () => {
  const push = (session_id: string, seq: number): SessionPush => ({ session_id, seq, epoch: "e", event: delta(`${seq}`) });
  const all = (outbox: Outbox) => Array.from({ length: outbox.size }, () => outbox.take());
  test.each([
    ["by number", { items: 3, bytes: 1_000 }],
    ["by bytes", { items: 100, bytes: 35 }],
  ])("collapses %s", (_title, limits) => {
    const outbox = new Outbox(limits);
    for (let i = 0; i < 3; i += 1) outbox.event(push("s", i), 10);
    outbox.sessions(["n"]);
    outbox.event(push("t", 3), 10);
    expect(all(outbox)).toEqual([
      { kind: "sessions", added: ["n"] },
      { kind: "event", push: { session_id: "s", gap: true } },
      { kind: "event", push: { session_id: "t", gap: true } },
    ]);
  });
  test("new sessions that wait are told together", () => {
    const outbox = new Outbox({ items: 10, bytes: 100 });
    outbox.sessions(["a"]);
    outbox.event(push("s", 1), 1);
    outbox.sessions(["b"]);
    expect(all(outbox)).toMatchObject([{ added: ["a", "b"] }, { kind: "event" }]);
  });
  test("what a page has read is forgotten, a newer epoch is not", () => {
    const outbox = new Outbox({ items: 10, bytes: 100 });
    outbox.gap("s");
    for (const seq of [1, 2, 3]) outbox.event(push("s", seq), 1);
    outbox.event({ ...push("s", 1), epoch: "f" }, 1);
    outbox.forget("s", "e", 2);
    expect(all(outbox)).toMatchObject([{ push: { seq: 3 } }, { push: { seq: 1, epoch: "f" } }]);
  });
});
