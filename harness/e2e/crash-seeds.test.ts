// SIGKILL of host or engine within 5 ms after a commit acknowledgement of a turn, 50 seeds. What must hold is read from
// a ledger outside the system and from what the system says after its restart.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Stack, startStack, until } from "./support/stack.ts";
import { ended, post, programEntry, startsPerAttempt, transcript } from "./support/turns.ts";

const SEEDS = Number(process.env["CRASH_SEEDS"] ?? 50);
/** A turn with one call commits about this often; a seed picks one of them to die after. */
const COMMITS = 8;
const PERMISSIONS = "version: 1\nrules:\n  - ledger::append\n";
const CONFIG = `version: 1
engine: { port: "\${III_PORT:-0}", http: { port: "\${III_HTTP_PORT:-0}" }, data: "\${III_DATA_DIR:-.iii}" }
workers:
  - name: turn-orchestrator
  - name: harness
  - name: session
  - name: policy
  - name: models-catalog
  - name: provider-scripted
${programEntry("ledger", "support/ledger-worker.ts")}`;

/** The seed's plan: who dies, after which acknowledgement, how many ms later. */
function planOf(seed: number): { points: string; victim: "engine" | "host" } {
  const victim = seed % 2 === 0 ? "engine" : "host";
  const hit = 1 + (Math.floor(seed / 2) % COMMITS);
  const delay = seed % 6;
  const point = victim === "engine" ? "commit.acked" : "turn.commit.acked";
  return { victim, points: `${point}=kill+${delay}@${hit}` };
}

async function runSeed(seed: number): Promise<void> {
  const plan = planOf(seed);
  const armed = join(mkdtempSync(join(tmpdir(), "iii-armed-")), "points");
  await using stack = await startStack({ config: CONFIG, permissions: PERMISSIONS, env: { LEDGER: "ledger.txt", FAILPOINTS_FILE: armed } });
  writeFileSync(armed, plan.points); // From here on a hit counts; the one that kills disarms.
  const text = `call ledger::append {"note":"n${seed}"}`;
  const accepted = await post(stack, "s1", text, { message_id: "m1" }).then(
    (answer) => answer.body,
    () => undefined,
  );
  const again = await survive(stack, plan.victim);
  try {
    // An unanswered post may be sent again under the same message id: one turn, whatever happened to the first.
    const body = accepted ?? (await until("the turn to be accepted", () => post(again, "s1", text, { message_id: "m1" }))).body;
    expect(body.turn_id).toBeTypeOf("string");
    const view = await ended(again, "s1");
    expect(["stopped", "failed"]).toContain(view.state);
    expect(view.turn_id).toBe(body.turn_id);
    for (const count of startsPerAttempt(join(stack.folder, "ledger.txt")).values()) expect(count).toBe(1);
    const { messages, calls, results } = await transcript(again, "s1");
    expect(messages.filter((message) => message.role === "user")).toHaveLength(1);
    expect(results.map((result) => result.function_call_id)).toEqual(calls.map((call) => call.id));
  } finally {
    if (again !== stack) await again.stop();
  }
}

/** Waits for the armed death and its recovery; a turn that ended before its victim's hit count is fine too. */
async function survive(stack: Stack, victim: "engine" | "host"): Promise<Stack> {
  if (victim === "host") return stack; // The supervisor brings it back.
  const died = await until(
    "the engine's death or the turn's end",
    async () => {
      const alive = await stack.health().then(
        () => true,
        () => false,
      );
      if (!alive) return "died";
      const view = await stack
        .trigger<{ state: string } | null>("turn::get_state", { session_id: "s1" }, { timeout_ms: 1_000 })
        .catch(() => null);
      return view?.state === "stopped" ? "ended" : undefined;
    },
    20_000,
  );
  if (died === "ended") return stack;
  return stack.restart();
}

describe("a process dies within 5 ms after an acknowledged commit", () => {
  test.each(Array.from({ length: SEEDS }, (_, seed) => seed))("seed %i", { timeout: 90_000 }, runSeed);
});
