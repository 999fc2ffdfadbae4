// K8: the wall clock dates what is stored. Every wait goes by elapsed time.
import { expect, test } from "vitest";
import { turnGetState } from "../src/contract.ts";
import { call, ended, gate, results, stack, start, text, tools, toyProvider, transcript, until, user } from "./rig.ts";

const HOUR = 3_600_000;
const held = (view: { state: string }) => view.state === "function_awaiting_approval";

function asks() {
  const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::once", {}, "c1")] : [text("ok")]));
  return [provider.worker, gate(() => "needs_approval").worker, tools().worker];
}

test.each([-3 * HOUR, -60_000, 2 * HOUR, 30 * 24 * HOUR])(
  "K8.1 K8.2 a parked call has its whole time, though the wall clock steps by %i ms",
  async (step) => {
    await using bus = await stack(asks(), { approval_timeout_ms: 600_000 });
    await start(bus, "s1", [user("go")]);
    await until(bus, "s1", held);
    bus.clock.step(step);
    await bus.clock.advance(300_000);
    const view = await bus.call(turnGetState, { session_id: "s1" });
    expect(view).toMatchObject({ state: "function_awaiting_approval" });
    const left = view?.awaiting_approval?.[0]?.remaining_ms ?? 0;
    expect(left).toBeGreaterThan(290_000);
    expect(left).toBeLessThanOrEqual(300_000);
    await bus.clock.advance(310_000);
    await until(bus, "s1", ended);
    expect(results(await transcript(bus, "s1"))[0]?.details).toMatchObject({ denied_by: "expired" });
  },
);

test("K8.1 a process that starts with another wall clock never gives a parked call more than its whole time", async () => {
  await using bus = await stack(asks(), { approval_timeout_ms: 600_000 });
  await start(bus, "s1", [user("go")]);
  await until(bus, "s1", held);
  bus.clock.step(-3 * HOUR);
  await bus.crash();
  await bus.settle();
  const view = await bus.call(turnGetState, { session_id: "s1" });
  expect(view?.awaiting_approval?.[0]?.remaining_ms).toBeLessThanOrEqual(600_000);
  await bus.clock.advance(650_000);
  await until(bus, "s1", ended);
  expect(results(await transcript(bus, "s1"))[0]?.details).toMatchObject({ denied_by: "expired" });
});

test.each([-3 * HOUR, 2 * HOUR])(
  "K8.1 K8.2 a silent model is waited for by elapsed time, though the wall clock steps by %i ms",
  async (step) => {
    const provider = toyProvider(() => "hang");
    await using bus = await stack([provider.worker], { model_timeout_ms: 100_000 });
    await start(bus, "s1", [user("go")]);
    await until(bus, "s1", () => provider.seen.length === 1);
    bus.clock.step(step);
    await bus.clock.advance(80_000);
    expect(await bus.call(turnGetState, { session_id: "s1" })).toMatchObject({ state: "assistant_streaming" });
    await bus.clock.advance(40_000);
    expect(await until(bus, "s1", ended)).toMatchObject({ stop_reason: "error" });
  },
);

test.each([-3 * HOUR, 2 * HOUR])(
  "K8.1 K8.2 a running call keeps its time-out, and the sweeper its beat, though the wall clock steps by %i ms",
  async (step) => {
    const provider = toyProvider((messages) => (results(messages).length === 0 ? [call("t::slow", {}, "c1")] : [text("ok")]));
    const toy = tools();
    await using bus = await stack([provider.worker, gate().worker, toy.worker]);
    await start(bus, "s1", [user("go")]);
    await until(bus, "s1", () => toy.ledger.length === 1);
    bus.clock.step(step);
    await bus.clock.advance(60_000);
    expect(await bus.call(turnGetState, { session_id: "s1" })).toMatchObject({ state: "function_execute" });
    await bus.clock.advance(70_000);
    expect(await until(bus, "s1", ended)).toMatchObject({ state: "stopped" });
    expect(toy.cancelled()).toBe(1);
  },
);
