// What was acknowledged is there after any crash; what was not is there as a whole or not at all.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ManualClock } from "@iii/sdk/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stateGet, stateTransact } from "../../src/builtin/state/contract.ts";
import { createSqliteStore } from "../../src/store/sqlite.ts";
import { createMemoryStore, testBus } from "../../src/testing/index.ts";

/** Sends `count` transactions, one each `gapMs`, and kills the engine at `crashAt`. Says which were acknowledged and which are there. */
async function killAt(crashAt: number, gapMs: number, count: number) {
  const clock = new ManualClock();
  await using bus = await testBus([], { clock, store: createMemoryStore({ clock, latency_ms: 7 }) });
  const acked = new Set<number>();
  const send = (n: number): void => {
    const sent = bus.call(stateTransact, {
      writes: [{ scope: "s", key: String(n), value: n }],
      enqueue: [{ queue: "turn-step", function_id: "nobody::here", data: { session_id: String(n) } }],
      events: [{ stream_name: "t", group_id: "g", item_id: String(n), data: n }],
    });
    sent.then(
      () => acked.add(n),
      () => undefined,
    );
  };
  for (let n = 0; n < count; n += 1) clock.setTimer(() => send(n), n * gapMs);
  await clock.advance(crashAt);
  const before = new Set(acked);
  await bus.crash();
  const there = async (n: number) => (await bus.call(stateGet, { scope: "s", key: String(n) })) === n;
  const values: number[] = [];
  for (let n = 0; n < count; n += 1) if (await there(n)) values.push(n);
  const items = await bus.call<number[]>("stream::list", { stream_name: "t", group_id: "g" });
  const { depth } = await bus.call<{ depth: number }>("engine::queue::topic_stats", { queue: "turn-step" });
  return { before: [...before], values, items, depth };
}

describe("crashes", () => {
  test("at any moment: nothing acknowledged is lost, and value, message and event exist together", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 9 }), async (crashAt, gapMs) => {
        const { before, values, items, depth } = await killAt(crashAt, gapMs, 8);
        expect(values).toEqual(expect.arrayContaining(before));
        expect(items).toEqual(values);
        expect(depth).toBe(values.length);
      }),
      { numRuns: 25 },
    );
  });

  test("SIGKILL of a process that writes to SQLite loses nothing that it had acknowledged", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kill-"));
    try {
      const script = join(folder, "writer.ts");
      const store = fileURLToPath(new URL("../../src/store/sqlite.ts", import.meta.url));
      writeFileSync(
        script,
        `import { writeSync } from "node:fs";
         import { createSqliteStore } from ${JSON.stringify(store)};
         const [from] = process.argv.slice(2).map(Number);
         const store = createSqliteStore({ folder: ${JSON.stringify(folder)} });
         await store.load();
         for (let n = from; ; n += 1) {
           const key = String(n);
           await Promise.all(["a", "b"].map((space) => store.commit([{ space, key, value: key }, { space: space + "2", key, value: key }])));
           writeSync(1, n + "\\n");
         }`,
      );
      let last = -1;
      for (const acks of [1, 30]) {
        const child = spawn(process.execPath, [script, String(last + 1)], { stdio: ["ignore", "pipe", "inherit"] });
        const goal = last + acks;
        let text = "";
        child.stdout.on("data", (chunk: Buffer) => {
          text += chunk.toString();
          last = Number(text.split("\n").at(-2) ?? last);
          if (last >= goal) child.kill("SIGKILL");
        });
        await once(child, "close");
        const opened = createSqliteStore({ folder });
        const rows = await opened.load();
        await opened.close();
        const count = (space: string) => rows.filter((row) => row.space === space).length;
        for (const space of ["a", "b"]) {
          expect(count(space)).toBeGreaterThan(last);
          expect(count(space)).toBe(count(`${space}2`));
        }
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 40_000);
});
