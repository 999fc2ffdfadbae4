// What was acknowledged is there after any crash; what was not is there as a whole or not at all.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, silentLogger } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { ManualClock } from "@iii/sdk/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stateGet, stateSet, stateTransact } from "../../src/builtin/storage/state/contract.ts";
import { createSqliteStore } from "../../src/storage/sqlite.ts";
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
      const store = fileURLToPath(new URL("../../src/storage/sqlite.ts", import.meta.url));
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

  test("an engine killed right after an acknowledgement has sent it, and has the write when it is back", async () => {
    const folder = mkdtempSync(join(tmpdir(), "acked-"));
    const script = fileURLToPath(new URL("../fixtures/durable-engine.ts", import.meta.url));
    const env = { ...process.env, FAILPOINTS: "commit.acked=kill@3" };
    const child = spawn(process.execPath, [script, folder], { env, stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(child, "close");
    try {
      const [line] = (await once(child.stdout, "data")) as [Buffer];
      const iii = connect({ dialer: wsDialer(`ws://127.0.0.1:${line.toString().trim()}`), log: silentLogger });
      const acked: number[] = [];
      const set = (n: number) => iii.trigger(stateSet, { scope: "s", key: String(n), value: n }).then(() => acked.push(n));
      await Promise.race([
        ended,
        set(1)
          .then(() => set(2))
          .then(() => set(3))
          .then(() => ended),
      ]);
      await iii.close({ drain_ms: 0 });
      expect(acked).toEqual([1, 2, 3]);
      const store = createSqliteStore({ folder });
      expect((await store.load()).map(({ key }) => key)).toEqual(["1", "2", "3"]);
      await store.close();
    } finally {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    }
  }, 40_000);
});
