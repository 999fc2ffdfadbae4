import { expect, test } from "vitest";
import { z } from "zod";
import { formatFault, parseConfig } from "../../src/config.ts";

const KNOWN = ["shell", "policy", "console"];
const CONFIGS = new Map([
  ["policy", z.object({ path: z.string().default("./rules"), limits: z.object({ bytes: z.int().optional() }).optional() })],
]);
const checkEntry = (entry: { path?: string | undefined }) =>
  entry.path === "./missing" ? { key: "path" as const, message: "there is no folder ./missing" } : undefined;
function faults(text: string, env: Record<string, string> = {}): string[] {
  const result = parseConfig(text, "config.yaml", { env, knownWorkers: KNOWN, configs: CONFIGS, checkEntry });
  return result.ok ? [] : result.faults.map(formatFault);
}
function config(text: string, env: Record<string, string> = {}) {
  const result = parseConfig(text, "config.yaml", { env, knownWorkers: KNOWN });
  if (!result.ok) throw new Error(result.faults.map(formatFault).join("\n"));
  return result.config;
}

test("a file of one line has every default", () => {
  const { engine, workers } = config("version: 1\n");
  expect(engine).toMatchObject({ host: "127.0.0.1", port: 49_134, http: { port: 3_111 }, data: ".iii", store: "sqlite" });
  expect(engine.queues["turn-step"]).toEqual({
    type: "fifo",
    message_group_field: "session_id",
    concurrency: 64,
    max_retries: 10,
    backoff_ms: 200,
  });
  expect(workers).toEqual([]);
});

test("the turn-step queue is there when the file names other queues", () => {
  expect(Object.keys(config("version: 1\nengine: { queues: { mail: { concurrency: 2 } } }\n").engine.queues)).toEqual([
    "turn-step",
    "mail",
  ]);
});

test.each([
  ["a default", `version: 1\nengine: { port: "\${III_PORT:-49134}" }\n`, {}, 49_134],
  ["the environment", `version: 1\nengine: { port: "\${III_PORT:-49134}" }\n`, { III_PORT: "0" }, 0],
  ["the other spelling", `version: 1\nengine: { port: "\${III_PORT:7000}" }\n`, {}, 7_000],
])("a lone placeholder takes the number that its place asks for: %s", (_title, text, env, port) => {
  expect(config(text, env).engine.port).toBe(port);
});

test("a placeholder in a worker's config is read as YAML reads a scalar, and a literal stays one", () => {
  const text = 'version: 1\nworkers:\n  - name: shell\n    config: { a: "${A}", b: "x-${A}", c: "$${A}", d: "${T:-true}" }\n';
  expect(config(text, { A: "15" }).workers[0]?.config).toEqual({ a: 15, b: "x-15", c: "${A}", d: true });
});

test("a value from the environment cannot become YAML", () => {
  const text = 'version: 1\nengine:\n  data: "${D}"\n';
  expect(config(text, { D: "x\nport: 1" }).engine.data).toBe("x\nport: 1");
});

test.each<[string, string, string[]]>([
  [
    "an unknown key",
    "version: 1\nworkers:\n  - name: shell\n    enabledd: false\n",
    ['config.yaml:4:5 workers[0].enabledd: unknown key; did you mean "enabled"?'],
  ],
  [
    "a name that is no bundled worker",
    "version: 1\nworkers:\n  - name: shel\n",
    ["config.yaml:3:11 workers[0].name: there is no bundled worker 'shel'; did you mean \"shell\"?"],
  ],
  [
    "a worker named twice",
    "version: 1\nworkers:\n  - name: shell\n  - name: shell\n",
    ["config.yaml:4:11 workers[1].name: 'shell' is named twice; one entry per worker"],
  ],
  [
    "two sources",
    "version: 1\nworkers:\n  - name: shell\n    path: ./a\n    package: b\n",
    ["config.yaml:5:5 workers[0].package: path and package exclude each other; keep one of them"],
  ],
  ["a wrong port", "version: 1\nengine:\n  port: 70000\n", ["config.yaml:3:9 engine.port: Too big: expected number to be <=65535"]],
  [
    "an address that others can reach",
    "version: 1\nengine:\n  host: 0.0.0.0\n",
    ["config.yaml:3:9 engine.host: must be a loopback address (127.0.0.1, localhost or ::1) unless engine.auth is 'required'"],
  ],
  [
    "the store's earlier key",
    "version: 1\nengine:\n  storage: memory\n",
    ["config.yaml:3:12 engine.storage: is gone: use engine.store (sqlite, memory or postgres://user@host:port/database)"],
  ],
  [
    "a store that is none",
    "version: 1\nengine:\n  store: mysql://db\n",
    ["config.yaml:3:10 engine.store: must be sqlite, memory or postgres://user@host:port/database"],
  ],
  [
    "an unset variable",
    'version: 1\nengine:\n  data: "${NOPE}"\n',
    ["config.yaml:3:9 engine.data: NOPE is not set; set NOPE in the environment, or write ${NOPE:-default}"],
  ],
  [
    "an unset variable with a message",
    'version: 1\nengine:\n  data: "${NOPE:?say where}"\n',
    ["config.yaml:3:9 engine.data: say where; set NOPE in the environment, or write ${NOPE:-default}"],
  ],
  ["an alias", "version: 1\nengine: &e {}\nx: *e\n", ["config.yaml:1:1 anchors and aliases are not allowed; write the value out"]],
  ["an empty file", "", ["config.yaml:1:1 the file is empty; start with 'version: 1'"]],
])("%s is named with its place and a way out", (_title, text, expected) => {
  expect(faults(text)).toEqual(expected);
});

test("an unquoted placeholder in a flow map says that it wants quotes", () => {
  expect(faults("version: 1\nengine: { data: ${D:-x: y} }\n")[0]).toMatch(/^config\.yaml:2:\d+ .*quote this placeholder/);
});

test("a key written twice is refused at its second place", () => {
  expect(faults("version: 1\nengine:\n  port: 1\n  port: 2\n")[0]).toMatch(/^config\.yaml:4:3 .*unique/);
});

test("all faults come in one report, in the order of the file", () => {
  const text = "version: 2\nengine:\n  prot: 1\nworkers:\n  - name: Shell\n";
  expect(faults(text).map((line) => line.split(" ")[0])).toEqual(["config.yaml:1:10", "config.yaml:3:3", "config.yaml:5:11"]);
});

test.each<[string, Record<string, string>, object]>([
  ["III_PORT", { III_PORT: "1234" }, { port: 1234, http: { port: 3111 }, data: ".iii" }],
  ["III_HTTP_PORT", { III_HTTP_PORT: "0" }, { port: 49_134, http: { port: 0 }, data: ".iii" }],
  ["III_DATA_DIR", { III_DATA_DIR: "007" }, { port: 49_134, http: { port: 3111 }, data: "007" }],
  ["all three", { III_PORT: "1", III_HTTP_PORT: "2", III_DATA_DIR: "d" }, { port: 1, http: { port: 2 }, data: "d" }],
  [
    "empty ones, which set nothing",
    { III_PORT: "", III_HTTP_PORT: "", III_DATA_DIR: "" },
    { port: 49_134, http: { port: 3111 }, data: ".iii" },
  ],
])("U2 the environment has the last word, in a file without an engine part too: %s", (_title, env, expected) => {
  expect(config("version: 1\n", env).engine).toMatchObject(expected);
});

test.each([
  ["another number", "port: 5000, http: { port: 5001 }, data: elsewhere"],
  ["a placeholder of another variable", 'port: "${OTHER:-5000}", http: { port: "${OTHER:-5001}" }, data: "${OTHER:-x}"'],
  ["something else in the engine part", "store: memory"],
  ["other keys of http", 'http: { allowed_origins: ["http://a"] }'],
])("U2 … over what the file says: %s", (_title, engine) => {
  const env = { III_PORT: "1", III_HTTP_PORT: "2", III_DATA_DIR: "d" };
  expect(config(`version: 1\nengine: { ${engine} }\n`, env).engine).toMatchObject({ port: 1, http: { port: 2 }, data: "d" });
});

test.each(["abc", "70000", "-1", "1e3", " 80", "0x10", "80.5"])(
  "U2 a port '%s' in the environment is a fault of its variable, together with those of the file",
  (text) => {
    expect(faults("version: 1\nengine: { prt: 1 }\n", { III_PORT: text })).toEqual([
      `III_PORT engine.port: '${text}' is not a port; set a whole number from 0 to 65535, or unset it`,
      'config.yaml:2:11 engine.prt: unknown key; did you mean "port"?',
    ]);
  },
);

test.each([
  ["a list", "- a\n"],
  ["a text", "abc\n"],
  ["an engine part that is a number", "version: 1\nengine: 5\n"],
  ["an http part that is a list", "version: 1\nengine: { http: [1] }\n"],
])("U2 a file that is %s stays a fault when the environment sets something", (_title, text) => {
  expect(faults(text, { III_HTTP_PORT: "0" })[0]).toMatch(/^config\.yaml:\d+:\d+ .*expected object/);
});

test("U49 a name twice, unknown keys, a missing folder and wrong settings of workers are told in one run", () => {
  const text = `version: 1
sesion: 1
workers:
  - name: policy
    config: { pth: x, path: 5, limits: { byte: 1 } }
  - name: shell
    rooot: .
  - name: notes
    path: ./missing
  - name: shell
  - name: polizy
    enabled: 3
  - config: {}
`;
  expect(faults(text)).toEqual([
    'config.yaml:2:1 sesion: unknown key; did you mean "version"?',
    'config.yaml:5:15 workers[0].config.pth: unknown key; did you mean "path"?',
    "config.yaml:5:29 workers[0].config.path: must be a text, not a number",
    'config.yaml:5:42 workers[0].config.limits.byte: unknown key; did you mean "bytes"?',
    "config.yaml:7:5 workers[1].rooot: unknown key; known keys: name, enabled, config, isolate, path, package, command, external, env, provides, calls, restart",
    "config.yaml:9:11 workers[2].path: there is no folder ./missing",
    "config.yaml:10:11 workers[3].name: 'shell' is named twice; one entry per worker",
    "config.yaml:11:11 workers[4].name: there is no bundled worker 'polizy'; did you mean \"policy\"?",
    expect.stringMatching(/^config\.yaml:12:14 workers\[4\]\.enabled: .*expected boolean/),
    "config.yaml:13:5 workers[5].name: missing",
  ]);
});

test("U49 what replaces a bundled worker has settings of its own", () => {
  expect(faults("version: 1\nworkers:\n  - { name: policy, command: [x], config: { any: 1 } }\n")).toEqual([]);
});

test("an unquoted placeholder is told once, and other faults of the syntax beside it", () => {
  const text =
    "version: 1\nengine: { port: ${III_PORT:-1}, data: ${D:-x: y} }\nworkers:\n  - { name: shell, config: { root: ${ROOT} } }\n  - [\n";
  const told = faults(text);
  expect(told.map((line) => line.split(" ")[0]?.split(":")[1])).toEqual(["2", "4", "6"]);
  expect(told.filter((line) => line.includes("quote this placeholder"))).toHaveLength(2);
});

test("a quoted placeholder is not blamed for another fault of its line", () => {
  expect(faults('version: 1\nengine: { data: "x-${D}" ] }\n').join()).not.toContain("quote this placeholder");
});
