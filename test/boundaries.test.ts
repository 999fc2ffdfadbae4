// Re-derives from the sources who imports whom, so that no lint exemption can weaken it. Reads files only.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SKIP = new Set(["node_modules", "dist", "fixtures", ".git", ".iii"]);

function filesBelow(folder: string, wanted: RegExp): string[] {
  if (statSync(join(ROOT, folder), { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIP.has(entry.name) ? [] : filesBelow(path, wanted);
    return wanted.test(entry.name) ? [path] : [];
  });
}

const TOP = ["sdk", "engine", "harness", "workers"];
const SOURCES = TOP.flatMap((folder) => filesBelow(folder, /\.tsx?$/));
const PRODUCT = SOURCES.filter((path) => !/(^|\/)(test|e2e|bench)\//.test(path) && !path.endsWith(".config.ts"));

/** Source without comments; strings too when `strings` is false. */
function strip(text: string, strings: boolean): string {
  const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;
  return text.replace(token, (found) => (found.startsWith("/") ? " " : strings ? found : '""'));
}

interface Import {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

function importsOf(path: string): Import[] {
  const text = strip(readFileSync(join(ROOT, path), "utf8"), true);
  const pattern =
    /(?:^|[\s;])(?:import|export)\s+(type\s+)?[^;"']*?from\s*["']([^"']+)["']|(?:^|[\s;])import\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/g;
  return [...text.matchAll(pattern)].map((match) => {
    const specifier = match[2] ?? match[3] ?? match[4] ?? "";
    const to = specifier.startsWith(".") ? relative(ROOT, resolve(ROOT, dirname(path), specifier)) : specifier;
    return { from: path, to, typeOnly: match[1] !== undefined };
  });
}

const IMPORTS = PRODUCT.flatMap(importsOf);
const isOneOf = (to: string, names: readonly string[]) => names.some((name) => to === name || to.startsWith(`${name}/`));
const isRelative = (to: string, folder: string) => to.startsWith(`${folder}/`);
const isWorkerContract = (to: string) => /^@iii\/worker-[a-z0-9-]+\/contract$/.test(to);

interface Rule {
  readonly title: string;
  readonly applies: (path: string) => boolean;
  readonly allowed: (to: string, path: string) => boolean;
}

const workerOf = (path: string) => /^workers\/([^/]+)\//.exec(path)?.[1];
const LIBRARY = /^(?!@iii\/)(@[a-z0-9-]+\/)?[a-z0-9][a-z0-9.-]*(\/.*)?$/;
const isLibrary = (to: string) => LIBRARY.test(to) && !TOP.some((folder) => isRelative(to, folder));

const RULES: readonly Rule[] = [
  {
    title: "the protocol knows nothing but zod and the SDK's errors",
    applies: (path) => isRelative(path, "sdk/src/protocol"),
    allowed: (to) => to === "zod" || isRelative(to, "sdk/src/protocol") || to === "sdk/src/errors.ts",
  },
  {
    title: "the SDK knows neither the engine nor the harness",
    applies: (path) => isRelative(path, "sdk"),
    allowed: (to) => isRelative(to, "sdk") || isOneOf(to, ["zod", "ws", "pino", "@opentelemetry"]) || to.startsWith("node:"),
  },
  {
    title: "the engine's core knows the protocol and itself",
    applies: (path) => isRelative(path, "engine/src/core"),
    allowed: (to) => isOneOf(to, ["@iii/sdk", "@iii/sdk/protocol", "zod"]) || isRelative(to, "engine/src/core"),
  },
  {
    title: "the engine knows the SDK and no worker, no harness",
    applies: (path) => isRelative(path, "engine"),
    allowed: (to) => isRelative(to, "engine") || isOneOf(to, ["@iii/sdk"]) || isLibrary(to) || to.startsWith("node:"),
  },
  {
    title: "a built-in reaches the engine through its host, never through the shell",
    applies: (path) => isRelative(path, "engine/src/builtin"),
    allowed: (to) => !isRelative(to, "engine/src/shell") && !isRelative(to, "engine/src/transport") && to !== "engine/src/engine.ts",
  },
  {
    title: "the engine's testing door alone may use the SDK's test tools",
    applies: (path) => isRelative(path, "engine/src") && !isRelative(path, "engine/src/testing"),
    allowed: (to) => to !== "@iii/sdk/testing",
  },
  {
    title: "the vocabulary knows the SDK's definitions, zod and how JSON is made canonical",
    applies: (path) => isRelative(path, "harness/contracts"),
    allowed: (to) => isRelative(to, "harness/contracts") || isOneOf(to, ["@iii/sdk", "zod", "canonicalize"]) || to === "node:crypto",
  },
  {
    title: "the provider kit knows the SDK, the vocabulary and contracts",
    applies: (path) => isRelative(path, "harness/provider-kit"),
    allowed: (to) =>
      isRelative(to, "harness/provider-kit") ||
      isOneOf(to, ["@iii/sdk", "@iii/contracts", "@iii/engine/contract"]) ||
      isWorkerContract(to) ||
      isLibrary(to) ||
      to.startsWith("node:"),
  },
  {
    title: "a worker knows the SDK, the vocabulary and other workers' contracts; providers also the kit",
    applies: (path) => isRelative(path, "workers"),
    allowed: (to, path) =>
      isRelative(to, `workers/${workerOf(path)}`) ||
      isOneOf(to, ["@iii/sdk", "@iii/contracts", "@iii/engine/contract"]) ||
      (isOneOf(to, ["@iii/provider-kit"]) && workerOf(path)?.startsWith("provider-") === true) ||
      isWorkerContract(to) ||
      isLibrary(to) ||
      to.startsWith("node:"),
  },
  {
    title: "the boot and the command know the engine and contracts, and no worker's code",
    applies: (path) => isRelative(path, "harness/boot") || isRelative(path, "harness/cli"),
    allowed: (to) =>
      isRelative(to, "harness/boot") ||
      isRelative(to, "harness/cli") ||
      to === "harness/package.json" ||
      isOneOf(to, ["@iii/sdk", "@iii/contracts", "@iii/engine"]) ||
      isWorkerContract(to) ||
      isLibrary(to) ||
      to.startsWith("node:"),
  },
];

test.each(RULES)("A18 $title", ({ applies, allowed }) => {
  const refused = IMPORTS.filter((one) => applies(one.from) && !allowed(one.to, one.from));
  expect(refused.map((one) => `${one.from} imports ${one.to}`)).toEqual([]);
});

test("the page takes nothing of Node, and code only from the SDK's browser door, the protocol and contracts", () => {
  const refused = IMPORTS.filter((one) => isRelative(one.from, "workers/console/ui")).filter((one) => {
    if (isRelative(one.to, "workers/console") || isLibrary(one.to)) return false;
    return !isOneOf(one.to, ["@iii/sdk/browser", "@iii/sdk/protocol", "@iii/contracts"]) && !(one.typeOnly || isWorkerContract(one.to));
  });
  expect(refused.map((one) => `${one.from} imports ${one.to}`)).toEqual([]);
});

const isPure = (path: string) =>
  isRelative(path, "engine/src/core") || /^workers\/[^/]+\/src\/(machine\/[a-z-]+|events|request|errors)\.ts$/.test(path);
const IMPURE = /\b(process|fetch|Date|setTimeout|setInterval|setImmediate|queueMicrotask|performance)\b\s*[.(]|\bnew Date\b/;

test("pure files name no process, no network, no clock and no timer", () => {
  const pure = PRODUCT.filter(isPure);
  const impure = pure.flatMap((path) => {
    const found = IMPURE.exec(strip(readFileSync(join(ROOT, path), "utf8"), false));
    const outside = importsOf(path).filter((one) => one.to.startsWith("node:") || isOneOf(one.to, ["ws", "pino"]));
    return [...(found === null ? [] : [`${path} names ${found[0]}`]), ...outside.map((one) => `${path} imports ${one.to}`)];
  });
  expect(pure.length).toBeGreaterThan(0);
  expect(impure).toEqual([]);
});

test("nothing but its own folder knows the keyless provider", () => {
  const word = ["scrip", "ted"].join("");
  const knowing = [...PRODUCT, ...TOP.flatMap((folder) => filesBelow(folder, /\.ya?ml$/)).filter((path) => !/\/(test|e2e)\//.test(path))]
    .filter((path) => !path.includes("/testing/") && !path.includes(`${sep}provider-${word}${sep}`))
    .filter((path) => readFileSync(join(ROOT, path), "utf8").toLowerCase().includes(word));
  expect(knowing).toEqual([]);
});

test("U39 what product code loads is a dependency of its package: pnpm start installs no others", () => {
  const named = (folder: string) => {
    const manifest = JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8")) as Record<string, object | undefined>;
    return Object.keys({ ...manifest["dependencies"], ...manifest["optionalDependencies"] });
  };
  const folderOf = (path: string) =>
    /^(sdk|engine|harness\/contracts|harness\/provider-kit|harness|workers\/[^/]+)\//.exec(path)?.[1] ?? "";
  const packageOf = (to: string) => /^(@[^/]+\/)?[^/]+/.exec(to)?.[0] ?? to;
  const loaded = IMPORTS.filter(({ from, to, typeOnly }) => !typeOnly && !from.includes("/testing/") && !to.startsWith("node:"));
  const outside = loaded.filter(({ to }) => to.startsWith("@iii/") || isLibrary(to));
  const missing = outside.filter(({ from, to }) => !named(folderOf(from)).includes(packageOf(to)));
  expect(missing.map((one) => `${one.from} loads ${one.to}`)).toEqual([]);
});

test("a worker's package shows its contract and nothing else", () => {
  const names = readdirSync(join(ROOT, "workers"));
  const wrong = names.filter((name) => {
    const manifest = JSON.parse(readFileSync(join(ROOT, "workers", name, "package.json"), "utf8")) as { name: string; exports?: object };
    return manifest.name !== `@iii/worker-${name}` || Object.keys(manifest.exports ?? {}).some((door) => door !== "./contract");
  });
  expect(wrong).toEqual([]);
});

test("K13.3 the shapes of secrets stand in one file", () => {
  const knowing = PRODUCT.filter((path) =>
    /AKIA|AIza|\bxox|PRIVATE KEY|\bgh\[|\(\?:sk\|/.test(strip(readFileSync(join(ROOT, path), "utf8"), true)),
  );
  expect(knowing).toEqual(["sdk/src/secrets.ts"]);
});
