// SIGKILL of the engine, or of the turns' process where they have one, within 5 ms after a commit acknowledgement, all seeds on one stack, one session a seed.
// What must hold is read from a ledger outside the system and from what the system says after its restart.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Stack, startStack, until } from "./stack.ts";
import { ended, post, programEntry, startsPerAttempt, transcript } from "./turns.ts";

/** A turn with one call commits about this often; a seed picks one of them to die after. */
const COMMITS = 6;
const PERMISSIONS = "version: 1\nrules:\n  - ledger::append\n";
/** A stack whose turns run in the shared host, or in a process of their own. */
const configOf = ({ isolated = false, bundled = "linked" }: Deaths) => `version: 1
engine: { bundled: ${bundled}, port: "\${III_PORT:-0}", http: { port: "\${III_HTTP_PORT:-0}" }, data: "\${III_DATA_DIR:-.iii}" }
workers:
  - { name: turn-orchestrator, isolate: ${isolated} }
  - name: harness
  - name: session
  - name: policy
  - name: models-catalog
  - name: provider-scripted
${programEntry("ledger", "support/ledger-worker.ts")}`;

type Victim = "engine" | "host";

/** Where the turns run. Default: in the engine's process. */
export interface Deaths {
  readonly isolated?: boolean;
  readonly bundled?: "linked" | "process";
}

/** The seed's plan: who dies, after which acknowledgement, how many ms later. Victims alternate: a new engine counts host crashes anew. */
function planOf(seed: number): { points: string; victim: Victim } {
  const victim = seed % 2 === 0 ? "host" : "engine";
  const hit = 1 + (Math.floor(seed / 2) % COMMITS);
  const point = victim === "engine" ? "commit.acked" : "turn.commit.acked";
  return { victim: together ? "engine" : victim, points: `${point}=kill+${seed % 6}@${hit}` };
}

const folder = mkdtempSync(join(tmpdir(), "iii-armed-"));
const armed = join(folder, "points");
let stack: Stack;
let died = 0;
/** Turns and engine are one process: whoever's point is hit, both die. */
let together = true;
/** Keys of the writes that were acknowledged to us, whatever happened around them. */
const acknowledged: string[] = [];

/** Writes until told to stop and notes what was acknowledged. */
function writeBeside(seed: number): () => Promise<void> {
  let on = true;
  const { iii } = stack;
  const loop = async () => {
    for (let n = 0; on && n < 200; n += 1) {
      const key = `${seed}-${n}`;
      const ok = await iii.trigger("state::set", { scope: "acked", key, value: n }, { timeout_ms: 2_000 }).then(
        () => true,
        () => false,
      );
      if (!ok) return;
      acknowledged.push(key);
    }
  };
  const done = loop();
  return () => {
    on = false;
    return done;
  };
}

/** Waits for the armed death and its recovery. A turn that ended before its victim's hit came up is disarmed. */
async function survive(victim: Victim, session_id: string): Promise<void> {
  const what = await until("a death or the turn's end", async () => {
    if (!existsSync(armed)) return "died";
    const view = await stack.trigger<{ state: string } | null>("turn::get_state", { session_id }, { timeout_ms: 1_000 }).catch(() => null);
    return view?.state === "stopped" || view?.state === "failed" ? "ended" : undefined;
  });
  rmSync(armed, { force: true });
  if (what === "ended") return;
  died += 1;
  if (victim === "engine") {
    await stack.ended();
    stack = await stack.restart();
  }
}

async function runSeed(seed: number): Promise<void> {
  const session_id = `s${seed}`;
  const plan = planOf(seed);
  const text = `call ledger::append {"note":"n${seed}"}`;
  const stopWriting = writeBeside(seed);
  writeFileSync(armed, plan.points); // From here on a hit counts; the one that kills disarms.
  const first = post(stack, session_id, text, { message_id: "m1" }).then(
    (answer) => answer.body,
    () => undefined,
  );
  await survive(plan.victim, session_id);
  await stopWriting();
  // An unanswered post is sent again under the same message id: one turn, whatever happened to the first.
  const accepted = await first;
  const again = await until("the turn to be accepted", () => post(stack, session_id, text, { message_id: "m1" }).catch(() => undefined));
  if (accepted !== undefined) expect(again.body).toMatchObject({ turn_id: accepted.turn_id, deduplicated: true });
  const view = await ended(stack, session_id);
  expect(view.turn_id).toBe(again.body.turn_id);
  const { messages, calls, results } = await transcript(stack, session_id);
  expect(messages.filter((message) => message.role === "user")).toHaveLength(1);
  expect(calls).toHaveLength(1);
  expect(results.map((result) => result.function_call_id)).toEqual(calls.map((call) => call.id));
}

/** The suite over this many seeds. */
export function survivesDeaths(seeds: number, where: Deaths = {}): void {
  beforeAll(async () => {
    together = where.isolated !== true && where.bundled !== "process";
    stack = await startStack({
      config: configOf(where),
      permissions: PERMISSIONS,
      env: { LEDGER: "ledger.txt", FAILPOINTS_FILE: armed },
    });
  });
  afterAll(async () => {
    await stack[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(Array.from({ length: seeds }, (_, seed) => seed))("seed %i", { timeout: 90_000 }, runSeed);

  test("the processes really died, no attempt started twice, and every acknowledged write is there", async () => {
    expect(died).toBeGreaterThanOrEqual(Math.floor(seeds * 0.8));
    const starts = startsPerAttempt(join(stack.folder, "ledger.txt"));
    expect(starts.size).toBeGreaterThanOrEqual(Math.floor(seeds * 0.5));
    expect([...starts.entries()].filter(([, count]) => count !== 1)).toEqual([]);
    const rows = await stack.trigger<{ key: string }[]>("state::list", { scope: "acked", with_keys: true });
    const there = new Set(rows.map((row) => row.key));
    expect(acknowledged.length).toBeGreaterThan(seeds);
    expect(acknowledged.filter((key) => !there.has(key))).toEqual([]);
  });
}
