import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { processSpawner } from "@iii/engine/supervisor";
import { BusError } from "@iii/sdk";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startFault } from "../boot/start-fault.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "iii-fault-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What Node itself makes of a module, told by a process of its own: here modules go through the test runner. */
async function told(file: string, source: string): Promise<string> {
  writeFileSync(join(folder, file), source);
  const lines: string[] = [];
  const script = `
    const { startFault } = await import(${JSON.stringify(import.meta.resolve("../boot/start-fault.ts"))});
    await import(${JSON.stringify(pathToFileURL(join(folder, file)).href)}).catch((error) => console.log(startFault(error, ${JSON.stringify(folder)})));
  `;
  const spec = { argv: [process.execPath, "--input-type=module", "-e", script], env: {}, cwd: folder, ipc: false };
  await new Promise<void>((ended) => {
    processSpawner.spawn(spec, {
      exit: () => setImmediate(ended),
      message: () => undefined,
      line: (_stream, text) => void lines.push(text),
    });
  });
  await expect.poll(() => lines.length).toBeGreaterThan(0);
  return lines.join("\n");
}

test.each<[string, string, string, RegExp]>([
  ["a syntax error", "register.ts", "export const a = 1;\nexport const b = {\n  c: = 2,\n};\n", /^register\.ts:3:6: Expression expected$/],
  ["an import that is not there", "register.ts", 'import { nope } from "node:fs";\nnope();\n', /^register\.ts:1:10: .*'nope'/],
  [
    "a package that is not installed",
    "register.ts",
    '\nimport "@iii/nope";\n',
    /^Cannot find package '@iii\/nope' imported from register\.ts$/,
  ],
  [
    "an error of its own",
    "register.ts",
    "const a: number = 1;\n(a as unknown as () => void)();\n",
    /^register\.ts:2:\d+: .*not a function$/,
  ],
])("U7 %s is told with file, line and column, once", async (_title, file, source, expected) => {
  expect(await told(file, source)).toMatch(expected);
});

test("U7 an error with words for people stands as it is, and anything else as text", () => {
  expect(startFault(new BusError("config_invalid", "say where"), "/r")).toBe("say where");
  expect(startFault("odd", "/r")).toBe("odd");
});
