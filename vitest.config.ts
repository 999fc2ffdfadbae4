import { defineConfig } from "vitest/config";

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
          include: ["harness/e2e/scenarios/**/*.test.ts"],
          testTimeout: 90_000,
          hookTimeout: 90_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
