// The crash table: the process dies at every place between commit, effect and outcome, and comes back on the same store.
import { APPROVALS_SCOPE, type ApprovalRow } from "@iii/worker-approval-gate/contract";
import { sessionMessages } from "@iii/worker-session/contract";
import { expect, test } from "vitest";
import { worker as session } from "../../session/src/register.ts";
import { turnGetState } from "../src/contract.ts";
import { call, ended, events, gate, results, stack, start, text, tools, toyProvider, transcript, user } from "./rig.ts";

type Bus = Awaited<ReturnType<typeof stack>>;

/** How a process dies: `there`, and nothing after that place happens; or `soon`, while what follows is under way. */
type Death = { at: number; how: "there" | "soon"; turns: number };

class Reaper {
  hits: string[] = [];
  death: Death | undefined;
  readonly #now = Promise.withResolvers<void>();

  point = (name: string): void | Promise<void> => {
    this.hits.push(name);
    if (this.death === undefined || this.hits.length !== this.death.at) return undefined;
    this.#now.resolve();
    return this.death.how === "there" ? new Promise<void>(() => undefined) : undefined;
  };

  get struck(): boolean {
    return this.death !== undefined && this.hits.length >= this.death.at;
  }

  /** Resolves when the place was reached. */
  get when(): Promise<void> {
    return this.#now.promise;
  }
}

async function allowPending(bus: Bus): Promise<void> {
  const rows = await bus.call<{ key: string; value: ApprovalRow; rev: number }[]>("state::list", {
    scope: APPROVALS_SCOPE,
    with_keys: true,
  });
  for (const { key, value, rev } of rows) {
    if (value.status !== "pending") continue;
    const at = { scope: APPROVALS_SCOPE, key };
    const decided = { ...value, status: "decided", decision: "allow", reason: null, by: "robot", decided_at: 7 };
    await bus.call("state::transact", { checks: [{ ...at, rev }], writes: [{ ...at, value: decided }] });
  }
}

const BATCH = [
  call("t::pure", { n: 1 }, "c1"),
  call("t::once", { n: 2 }, "c2"),
  call("t::again", { n: 3 }, "c3"),
  call("t::held", { n: 4 }, "c4"),
];

/** Where the transcript is kept: in the orchestrator's own rows, or by the session worker. */
type Where = "own" | "tree";

function scene(where: Where) {
  const provider = toyProvider((messages) => (results(messages).length === 0 ? BATCH : [text("all done")]));
  const toy = tools();
  const policy = gate((id) => (id === "t::again" ? "needs_approval" : "allow"));
  return { toy, workers: [...(where === "tree" ? [session] : []), provider.worker, policy.worker, toy.worker] };
}

async function die(bus: Bus, turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  await bus.crash();
  // A client that got no receipt sends the same message again.
  await start(bus, "s1", [user("go")], { message_id: "m1" });
}

/** One whole turn with at most one death; returns when it has ended. */
async function live(reaper: Reaper, where: Where) {
  const { toy, workers } = scene(where);
  const bus = await stack(workers, { approval_timeout_ms: 0 }, reaper.point);
  let dead = false;
  const death = reaper.when.then(() => {
    dead = true;
  });
  const accepted = start(bus, "s1", [user("go")], { message_id: "m1" }).catch(() => undefined);
  for (let tick = 0; tick < 400; tick += 1) {
    await Promise.race([bus.settle(), death]);
    if (dead) {
      dead = false;
      await die(bus, reaper.death?.turns ?? 0);
    }
    await allowPending(bus);
    const view = await bus.call(turnGetState, { session_id: "s1" });
    if (view !== null && ended(view)) {
      await accepted;
      return { bus, toy, view };
    }
    await bus.clock.advance(tick < 20 ? 50 : 1_000);
  }
  const view = await bus.call(turnGetState, { session_id: "s1" });
  throw new Error(`stuck at ${JSON.stringify(view)} after ${reaper.hits.at((reaper.death?.at ?? 1) - 1)}`);
}

async function kept(bus: Bus, where: Where) {
  if (where === "own") return await transcript(bus, "s1");
  return (await bus.call(sessionMessages, { session_id: "s1" })).messages.map((entry) => entry.message);
}

async function holds(reaper: Reaper, transcripts: Where): Promise<void> {
  const { bus, toy, view } = await live(reaper, transcripts);
  await using _ = bus;
  const where = `death ${JSON.stringify(reaper.death)} at ${reaper.hits[(reaper.death?.at ?? 0) - 1]}`;
  expect(view, where).toMatchObject({ state: "stopped", stop_reason: "end" });
  const messages = await kept(bus, transcripts);
  expect(
    messages.map((message) => message.role),
    where,
  ).toEqual(["user", "assistant", ...BATCH.map(() => "function_result"), "assistant"]);
  expect(
    results(messages).map((result) => result.function_call_id),
    where,
  ).toEqual(BATCH.map((block) => block.id));
  // P6: what is not declared repeatable is started at most once; what is declared so keeps its key.
  expect(toy.ledger.filter((entry) => entry.function_id === "t::once").length, where).toBeLessThanOrEqual(1);
  expect(new Set(toy.ledger.filter((entry) => entry.function_id === "t::again").map((entry) => entry.key)).size, where).toBe(1);
  const ends = (await events(bus, "s1")).filter((event) => event.type === "agent_end");
  expect(ends, where).toHaveLength(1);
  expect(await bus.call("state::list", { scope: "active_turns" }), where).toEqual([]);
  expect(await bus.call("state::list", { scope: APPROVALS_SCOPE }), where).toEqual([]);
  expect(await bus.call("state::list", { scope: "session", prefix: "s1/pending/" }), where).toEqual([]);
}

test.each(["own", "tree"] as const)("nobody dies: the table's own scene holds, with the transcript in its %s rows", async (where) => {
  const reaper = new Reaper();
  await holds(reaper, where);
  expect(reaper.hits.length).toBeGreaterThan(15);
});

test.each(["own", "tree"] as const)(
  "A9 death at every cut point: the turn ends, nothing is run twice in silence, nothing is lost or doubled (%s)",
  async (where) => {
    const dry = new Reaper();
    await holds(dry, where);
    for (let at = 1; at <= dry.hits.length; at += 1) {
      const reaper = new Reaper();
      reaper.death = { at, how: "there", turns: 0 };
      await holds(reaper, where);
    }
  },
  240_000,
);

test.each(["own", "tree"] as const)(
  "death while a commit or an effect is under way, at seeded moments, changes nothing of that (%s)",
  async (where) => {
    const dry = new Reaper();
    await holds(dry, where);
    for (let seed = 0; seed < 24; seed += 1) {
      const reaper = new Reaper();
      reaper.death = { at: 1 + ((seed * 7) % dry.hits.length), how: "soon", turns: seed % 6 };
      await holds(reaper, where);
    }
  },
  240_000,
);
