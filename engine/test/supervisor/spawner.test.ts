import { expect, test } from "vitest";
import { processSpawner } from "../../src/builtin/supervisor/spawner.ts";

/** Every line that a script writes to stdout. */
async function linesOf(script: string): Promise<string[]> {
  const lines: string[] = [];
  const ended = Promise.withResolvers<void>();
  const spec = { argv: [process.execPath, "-e", script], env: {}, cwd: "/", ipc: false };
  processSpawner.spawn(spec, {
    exit: () => setImmediate(ended.resolve),
    message: () => undefined,
    line: (stream, text) => void (stream === "stdout" && lines.push(text)),
  });
  await ended.promise;
  await expect.poll(() => lines.at(-1)).toContain("last");
  return lines;
}

test("what a process writes arrives in lines, also the last one that has no end", async () => {
  expect(await linesOf(`process.stdout.write("one\\r\\ntwo é\\n\\nlast")`)).toEqual(["one", "two é", "", "last"]);
});

test("a line that does not end is handed on in pieces and costs no memory", async () => {
  const lines = await linesOf(`process.stdout.write("x".repeat(1_000_000) + "last\\n")`);
  expect(lines.join("")).toBe(`${"x".repeat(1_000_000)}last`);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(200_000);
});
