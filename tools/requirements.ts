// Finds by reading the sources which test shows which requirement, and writes docs/acceptance.md from it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { GROUPS } from "../harness/e2e/requirements.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SKIP = new Set(["node_modules", "dist", "fixtures", ".git", ".iii"]);
/** Scenarios that only the full run has. */
const FULL_ONLY = "harness/e2e/full/";
/** Its samples are no citations. */
const ITSELF = "harness/e2e/coverage.test.ts";

/** The command that runs a test: the usual one, or only the full one. */
export type Run = "test" | "test:full";

export interface Evidence {
  readonly id: string;
  readonly file: string;
  readonly run: Run;
}

const ID = String.raw`(?:[KP]\d+\.\d+|[AMPU]\d+|case \d+)`;
const COMMENT = /^\s*\/\/.*$|^\s*\/\*[\s\S]*?\*\//gm;
const HEAD = new RegExp(`["'\`]((?:${ID}(?:,|:| and)? )+)\\S`, "g");
const VERIFIES = /\bverifies\(([^)]*)\)/g;

/** The ids that a test file cites: at the head of a title, or of a table's row, or by `verifies`. Comments cite nothing. */
export function idsIn(source: string): string[] {
  const code = source.replace(COMMENT, "");
  const heads = [...code.matchAll(HEAD), ...code.matchAll(VERIFIES)].map((match) => match[1] ?? "");
  return [...new Set(heads.flatMap((text) => text.match(new RegExp(ID, "g")) ?? []))];
}

function testFiles(folder = ""): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return SKIP.has(entry.name) ? [] : testFiles(path);
    return /\.test\.tsx?$/.test(entry.name) && path !== ITSELF ? [path] : [];
  });
}

/** Every citation in the tree. */
export function evidence(): Evidence[] {
  return testFiles().flatMap((file) =>
    idsIn(readFileSync(join(ROOT, file), "utf8")).map(
      (id): Evidence => ({ id, file, run: file.startsWith(FULL_ONLY) ? "test:full" : "test" }),
    ),
  );
}

function rowOf(id: string, promise: string, shown: readonly Evidence[]): string {
  const files = shown.map(({ file, run }) => (run === "test" ? `\`${file}\`` : `\`${file}\` (\`${run}\`)`));
  return `| ${id} | ${promise} | ${files.join(", ")} |`;
}

/** docs/acceptance.md, as it must be. */
export function acceptance(): string {
  const all = evidence();
  const tables = GROUPS.map(({ title, from, rows }) => {
    const lines = Object.entries(rows).map(([id, promise]) =>
      rowOf(
        id,
        promise,
        all.filter((one) => one.id === id),
      ),
    );
    return `## ${title}\n\nFrom: ${from}.\n\n| Id | Promise | Shown by |\n|---|---|---|\n${lines.join("\n")}\n`;
  });
  return `# What is promised, and what shows it

Made from \`harness/e2e/requirements.ts\` and the tests that name its ids: change those, then run \`npx -y pnpm requirements\`.
\`npx -y pnpm test\` runs everything here, with 10 seeds; where \`test:full\` stands beside a file, only \`npx -y pnpm test:full\` does, with 50 seeds.

${tables.join("\n")}
Figures: [performance.md](performance.md), by \`npx -y pnpm bench\`.
`;
}

if (import.meta.main) writeFileSync(join(ROOT, "docs/acceptance.md"), acceptance());
