import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HealthReport } from "@iii/engine/server";
import { expect, test } from "vitest";
import { banner, isSettled, settledText } from "../boot/banner.ts";
import { BannerLine, bannerLines, shownLines } from "../boot/manifest.ts";

const ESCAPE = String.fromCharCode(27);
const bare = (text: string) => text.replaceAll(new RegExp(`${ESCAPE}\\[\\d+m`, "g"), "");
const health = (changes: Partial<HealthReport>): HealthReport => ({
  status: "ready",
  workers: ["a", "b"],
  waiting: [],
  failed: [],
  durability: "full",
  ...changes,
});
const facts = { version: "1", busUrl: "ws://h:1", httpUrl: "http://h:2", place: "/d/engine.db", lines: [] };
const failed = health({
  status: "degraded",
  workers: ["a"],
  waiting: ["notes"],
  failed: [{ name: "notes", reason: "x.ts:3:1: bad\nmore" }],
});

test("U38 the banner names the database and one word of durability", () => {
  const text = bare(banner({ ...facts, health: health({}) }));
  expect(text).toContain("data      /d/engine.db (durability full)\n");
  expect(text).toContain("workers   2/2 ready\n");
  expect(text).toContain("health    http://h:2/healthz\n");
  expect(bare(banner({ ...facts, health: health({ durability: "memory" }) }))).toContain("NOTHING survives");
});

test.each<[string, HealthReport, boolean]>([
  ["all are ready", health({}), true],
  ["the rest has failed", failed, true],
  ["one has failed and another is on its way", health({ status: "degraded", waiting: ["notes", "late"], failed: failed.failed }), false],
  ["nothing is known yet", health({ status: "starting", workers: [], waiting: ["a"] }), false],
])("U4 the stack has settled, or not: %s", (_title, report, expected) => {
  expect(isSettled(report)).toBe(expected);
});

test("U4 what failed and what is late stands in the banner, and in the line that follows it", () => {
  const report = health({ ...failed, waiting: ["notes", "late"] });
  const text = bare(banner({ ...facts, health: report }));
  expect(text).toContain(
    "workers   1/3 ready\n            notes cannot start: x.ts:3:1: bad\n            more\n            still starting: late\n",
  );
  expect(bare(settledText(failed))).toMatch(/^workers {3}1\/2 ready\n {10}notes cannot start: x\.ts:3:1: bad/);
});

const line = (input: object) => BannerLine.parse(input);
test("workers say their own lines: places are filled in, and what does not apply or is not set is left out", () => {
  const lines = [
    line({ row: "page", text: "${http_url}/x" }),
    line({ row: "model", text: "${config.model}" }),
    line({ row: "other", text: "${config.none}" }),
    line({ row: "rule", text: "all", when: { mode: "open" }, warn: true }),
    line({ row: "never", text: "no", when: { mode: "shut" } }),
  ];
  expect(shownLines(lines, { page_key: "k", http_url: "http://h", bus_url: "ws://h", config: { model: "m", mode: "open" } })).toEqual([
    { row: "page", text: "http://h/x", warn: false },
    { row: "model", text: "m", warn: false },
    { row: "rule", text: "all", warn: true },
  ]);
});

test("a manifest that is missing or broken says nothing", () => {
  const folder = mkdtempSync(join(tmpdir(), "iii-manifest-"));
  expect(bannerLines(folder)).toEqual([]);
  writeFileSync(join(folder, "iii.worker.yaml"), "banner: [{ row: 5 }]");
  expect(bannerLines(folder)).toEqual([]);
  writeFileSync(join(folder, "iii.worker.yaml"), "banner:\n  - { row: a, text: b }\n");
  expect(bannerLines(folder)).toEqual([{ row: "a", text: "b", warn: false }]);
  rmSync(folder, { recursive: true });
});
