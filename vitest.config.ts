import { defineConfig } from "vitest/config";

declare module "vitest" {
  export interface ProvidedContext {
    /** How many seeds of the crash table to run. */
    seeds: number;
    /** How many values of a property over real processes to try. */
    values: number;
  }
}

/** The one switch between the usual run and the full one. */
const FULL = process.env["III_TESTS"] === "full";

export default defineConfig({
  test: {
    reporters: ["default", "./tools/summary-reporter.ts"],
    projects: [
      {
        test: {
          name: "unit",
          include: [
            "test/**/*.test.ts",
            "{sdk,engine}/test/**/*.test.ts",
            "harness/e2e/*.test.ts",
            "harness/test/**/*.test.ts",
            "harness/*/test/**/*.test.ts",
            "workers/*/test/**/*.test.ts",
          ],
          testTimeout: 15_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["harness/e2e/scenarios/**/*.test.ts", ...(FULL ? ["harness/e2e/full/**/*.test.ts"] : [])],
          provide: { seeds: FULL ? 50 : 10, values: FULL ? 300 : 15 },
          testTimeout: 90_000,
          hookTimeout: 90_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
