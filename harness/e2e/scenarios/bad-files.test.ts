// Broken files and taken ports: every fault with its place in one report, what to do about it, and what runs goes on.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Kept, keep } from "../support/kept.ts";
import { iii, processesOf, type Stack, startStack, until } from "../support/stack.ts";
import { ended, post, transcript } from "../support/turns.ts";

let stack: Stack;
let kept: Kept;

beforeAll(async () => {
  stack = await startStack();
  kept = await keep(stack);
});
afterAll(async () => stack?.[Symbol.asyncDispose]());

test("a broken config.yaml starts nothing: every fault with file, line and column in one report, exit code 6", async () => {
  const file = join(stack.folder, "broken.yaml");
  const data = join(stack.folder, "never");
  writeFileSync(file, `version: 2\nengine:\n  port: 70000\n  hots: 127.0.0.1\nworkers:\n  - name: polizy\n    enabled: 3\n`);
  const { code, stdout, stderr } = await iii(["start"], { III_CONFIG: file, III_DATA_DIR: data });
  expect([code, stdout]).toEqual([6, ""]);
  for (const place of ["1:10 version", "3:9 engine.port", "4:3 engine.hots", "7:14 workers[0].enabled"])
    expect(stderr).toContain(`broken.yaml:${place}`);
  expect(stderr).toContain('did you mean "host"?');
  writeFileSync(file, "version: 1\nworkers:\n  - name: [\n");
  expect((await iii(["start"], { III_CONFIG: file, III_DATA_DIR: data })).stderr).toMatch(/broken\.yaml:\d+:\d+ /);
  expect((await iii(["start", "-c", "/no/such.yaml"])).stderr).toMatch(/such\.yaml:1:1 cannot be read: .*III_CONFIG/);
  expect(processesOf(data)).toEqual([]);
  await kept.unharmed();
});

test.each([
  ["III_PORT", "engine.port"],
  ["III_HTTP_PORT", "engine.http.port"],
])("a port in use (%s): exit code 7, which one, what to set, and nothing is left running", async (name, key) => {
  const taken = createServer();
  await new Promise<void>((done) => taken.listen(0, "127.0.0.1", done));
  const { port } = taken.address() as { port: number };
  const data = join(stack.folder, "other");
  const env = {
    III_PORT: "0",
    III_HTTP_PORT: "0",
    III_DATA_DIR: data,
    III_CONFIG: join(stack.folder, "config.yaml"),
    [name]: String(port),
  };
  const { code, stderr } = await iii(["start"], env);
  taken.close();
  expect(code).toBe(7);
  for (const part of [`port ${port} is in use`, name, key]) expect(stderr).toContain(part);
  expect(processesOf(data)).toEqual([]);
  await kept.unharmed();
});

test("iii-permissions.yaml broken while it runs: every fault with its place, and the last good rules stay", async () => {
  const file = join(stack.folder, "iii-permissions.yaml");
  const good = readFileSync(file, "utf8");
  const ask = () => stack.trigger<{ decision: string }>("policy::check_permissions", { function_id: "state::set", args: {} });
  expect(await ask()).toMatchObject({ decision: "deny" });
  writeFileSync(
    file,
    "version: 1\nrules:\n  - function: shell::exec\n    action: perhaps\n  - function: a::b\n    action: allow\n    args: { path: { matches: '(' } }\n",
  );
  const report = await until("the report", () => {
    const { stderr } = stack.output();
    return stderr.includes("iii-permissions.yaml:4:13") ? stderr : undefined;
  });
  expect(report).toMatch(/iii-permissions\.yaml:4:13: `action` must be allow or deny/);
  expect(report).toMatch(/iii-permissions\.yaml:7:30: `matches` of 'path'/);
  expect(report).toContain("the last good rules stay");
  expect(await ask()).toMatchObject({ decision: "deny" });
  writeFileSync(file, `${good}\n  - notes::add\n`);
  await until("the repaired rules", async () => {
    const { decision } = await stack.trigger<{ decision: string }>("policy::check_permissions", { function_id: "notes::add", args: {} });
    return decision === "allow" || undefined;
  });
  writeFileSync(file, good);
  await kept.unharmed();
});

test("iii-permissions.yaml broken at boot: policy does not start, says where, and every call is refused, not allowed", async () => {
  await using broken = await startStack({
    permissions: "version: 1\nrules:\n  - '*'\n  - !shell::exec\n  - function: ''\n    action: allow\n",
    config: (shipped) =>
      shipped.replace("  - name: turn-orchestrator\n", "  - name: turn-orchestrator\n    config: { startup_grace_ms: 0 }\n"),
    ready: false,
  });
  const { body } = await until("policy to be named as failed", async () => {
    const health = await broken.health();
    const others = health.body.waiting.filter((name) => name !== "policy");
    return health.body.failed.some((one) => one.name === "policy") && others.length === 0 ? health : undefined;
  });
  expect(body.status).toBe("degraded");
  const told = `${body.failed.map((one) => one.reason).join()}${broken.output().stderr}`;
  expect(told).toMatch(/iii-permissions\.yaml:4:5: .*quoted/);
  expect(told).toMatch(/iii-permissions\.yaml:5:15: /);
  await post(broken, "s1", 'call shell::fs::ls {"path":"."}');
  expect(await ended(broken, "s1")).toMatchObject({ state: "stopped" });
  expect((await transcript(broken, "s1")).results).toMatchObject([{ is_error: true, details: { denied_by: "gate_unavailable" } }]);
});

test("A15 the held call and the turn behind it have outlived all this", () => kept.finish());
