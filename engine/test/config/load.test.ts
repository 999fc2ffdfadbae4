import { expect, test } from "vitest";
import { formatFault, parseConfig } from "../../src/config.ts";

const KNOWN = ["shell", "policy", "console"];
function faults(text: string, env: Record<string, string> = {}): string[] {
  const result = parseConfig(text, "config.yaml", { env, knownWorkers: KNOWN });
  return result.ok ? [] : result.faults.map(formatFault);
}
function config(text: string, env: Record<string, string> = {}) {
  const result = parseConfig(text, "config.yaml", { env, knownWorkers: KNOWN });
  if (!result.ok) throw new Error(result.faults.map(formatFault).join("\n"));
  return result.config;
}

test("a file of one line has every default", () => {
  const { engine, workers } = config("version: 1\n");
  expect(engine).toMatchObject({ host: "127.0.0.1", port: 49_134, http: { port: 3_111 }, data: ".iii", storage: "sqlite" });
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
    ["config.yaml:3:9 engine.host: must be a loopback address: 127.0.0.1, localhost or ::1"],
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
