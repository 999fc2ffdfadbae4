import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { connect } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { expect, test } from "vitest";
import WebSocket from "ws";
import { iii, isAlive, processesOf, REPO, startStack, until } from "../support/stack.ts";

test("A1 the stack boots to green, says what it promises, and Ctrl+C leaves no process", async () => {
  await using stack = await startStack();
  const { body } = await stack.health();
  expect(body).toMatchObject({ status: "ready", waiting: [], failed: [], durability: "full" });
  expect(body.workers).toContain("turn-orchestrator");
  await until("the banner", () => stack.output().stdout.includes("Ctrl+C") || undefined);
  const { stdout } = stack.output();
  expect(stdout).toContain(stack.httpUrl);
  expect(stdout).toContain(stack.url);
  expect(stdout).toContain("durability full");
  const started = processesOf(stack.folder);
  expect(started.length).toBeGreaterThanOrEqual(2);
  expect(await stack.stop()).toBe(0);
  expect(started.filter(isAlive)).toEqual([]);
});

test("A3 killing the host turns health to 503 with its workers' names, and it comes back", async () => {
  await using stack = await startStack({ bundled: "process" });
  const before = await stack.pid("host");
  await stack.kill9("host");
  // Its connections end one by one, and its exit is a notice of its own.
  const down = await until("health to name its workers and why", async () => {
    const seen = await stack.health();
    const named = ["policy", "session", "turn-orchestrator"].every((name) => seen.body.waiting.includes(name));
    return named && seen.body.failed.length > 0 ? seen : undefined;
  });
  expect(down.status).toBe(503);
  expect(down.body.failed[0]?.reason).toContain("SIGKILL");
  expect(down.body.workers).toContain("shell");
  await until("health to be green again", async () => (await stack.health()).status === 200 || undefined);
  expect(await stack.pid("host")).not.toBe(before);
});

test("killing the engine ends everything that it had started; a new one continues on the same data", async () => {
  await using stack = await startStack();
  await stack.trigger("state::set", { scope: "e2e", key: "k", value: 1 });
  await stack.kill9("engine");
  await using again = await stack.restart();
  expect(await again.trigger("state::get", { scope: "e2e", key: "k" })).toBe(1);
});

test("a worker of its own is restarted alone, stopped, and started again", async () => {
  await using stack = await startStack();
  const env = stack.cliEnv;
  const pid = await stack.pid("shell");
  await stack.kill9("shell");
  // The engine hears of the death a moment after the kernel; until then the stack looks ready.
  await until("another process of the shell", async () => (await stack.pid("shell")) !== pid || undefined);
  await until("shell to be ready again", async () => (await stack.health()).status === 200 || undefined);
  expect(await stack.pid("shell")).not.toBe(pid);
  const stopped = await iii(["worker", "stop", "shell", "--json"], env);
  expect(stopped).toMatchObject({ code: 0 });
  expect(JSON.parse(stopped.stdout)).toMatchObject({ name: "shell", state: "stopped" });
  expect((await stack.health()).status).toBe(200);
  expect(JSON.parse((await iii(["worker", "start", "shell", "--json"], env)).stdout)).toMatchObject({ state: "ready" });
  expect(JSON.parse((await iii(["worker", "restart", "policy", "--json"], env)).stdout)).toMatchObject({
    state: "ready",
    source: "bundled",
  });
});

test("a worker that cannot start is named with its reason and the rest stay up", async () => {
  await using stack = await startStack({ config: (text) => text.replace("root: ./workspace", "root: ./config.yaml"), ready: false });
  await until("shell to have failed", async () => (await stack.health()).body.failed.some((one) => one.name === "shell") || undefined);
  const rest = await until("the rest to be ready", async () => {
    const { body } = await stack.health();
    return body.waiting.length === 1 && body.failed.length === 1 ? body : undefined;
  });
  expect(rest).toMatchObject({ status: "degraded", waiting: ["shell"] });
});

test("an edit of config.yaml is announced, and applied by restart: the worker moves to another process", async () => {
  await using stack = await startStack();
  const file = join(stack.folder, "config.yaml");
  const shipped = readFileSync(file, "utf8");
  writeFileSync(file, shipped.replace("- name: policy", "- name: policie"));
  await until("the faults", () => stack.output().stderr.includes("config.yaml:") || undefined);
  expect(stack.output().stderr).toMatch(
    /config\.yaml:\d+:\d+ workers\[\d+\]\.name: there is no bundled worker 'policie'; did you mean "policy"\?/,
  );
  const refused = await iii(["worker", "restart", "policy"], stack.cliEnv);
  expect(refused.code).toBe(6);
  writeFileSync(file, shipped.replace("- name: session\n", "- name: session\n    isolate: true\n"));
  await until("the announcement", () => stack.output().stderr.includes("changed and is valid") || undefined);
  const moved = await iii(["worker", "restart", "session", "--json"], stack.cliEnv);
  expect(JSON.parse(moved.stdout)).toMatchObject({ state: "ready", source: "isolated" });
  expect(await stack.pid("session")).not.toBe(await stack.pid("host"));
});

test("a broken config.yaml starts nothing: every fault with its place, exit code 6", async () => {
  const file = join(REPO, "config.yaml");
  await using stack = await startStack();
  const broken = join(stack.folder, "broken.yaml");
  writeFileSync(broken, `${readFileSync(file, "utf8")}  - name: nobody\n    enabledd: true\n`);
  const { code, stdout, stderr } = await iii(["start", "-c", broken], { HOME: stack.folder });
  expect([code, stdout]).toEqual([6, ""]);
  expect(stderr).toMatch(/broken\.yaml:\d+:\d+ .*unknown key; did you mean "enabled"\?/);
});

test("a port in use says which and how to move it, and leaves nothing running", async () => {
  const taken = createServer();
  await new Promise<void>((done) => taken.listen(0, "127.0.0.1", done));
  const { port } = taken.address() as { port: number };
  await using stack = await startStack();
  const env = {
    III_PORT: String(port),
    III_HTTP_PORT: "0",
    III_DATA_DIR: join(stack.folder, "other"),
    III_CONFIG: join(stack.folder, "config.yaml"),
  };
  const { code, stderr } = await iii(["start"], env);
  taken.close();
  expect(code).toBe(7);
  expect(stderr).toContain(`port ${port} is in use`);
  expect(stderr).toContain("III_PORT");
  expect(processesOf(join(stack.folder, "other"))).toEqual([]);
});

test("the command line finds no engine, no function and no such flag: three different codes", async () => {
  const nobody = await iii(["worker", "list"], { III_URL: "ws://127.0.0.1:9" });
  expect([nobody.code, nobody.stdout]).toEqual([3, ""]);
  await using stack = await startStack();
  const env = stack.cliEnv;
  expect((await iii(["trigger", "no::such"], env)).code).toBe(4);
  expect((await iii(["worker", "list", "--jsn"], env)).code).toBe(2);
  expect((await iii(["wroker"], env)).code).toBe(2);
  const listed = await iii(["worker", "list", "--json"], env);
  expect([listed.code, JSON.parse(listed.stdout).length]).toEqual([0, (await stack.health()).body.workers.length]);
  const approvals = await iii(["approvals", "--json"], env);
  expect([approvals.code, approvals.stdout]).toEqual([0, "[]\n"]);
});

test("a browser of another site gets no socket, our own page does, and the bus is also under /ws", async () => {
  await using stack = await startStack();
  const open = (url: string, origin?: string) =>
    new Promise<number>((done) => {
      const socket = new WebSocket(url, origin === undefined ? {} : { origin });
      socket.on("open", () => {
        done(101);
        socket.terminate();
      });
      socket.on("unexpected-response", (_request, response) => done(response.statusCode ?? 0));
      socket.on("error", () => undefined);
    });
  const page = stack.httpUrl.replace("http:", "ws:");
  expect(await open(`${page}/ws`, stack.httpUrl)).toBe(101);
  expect(await open(`${page}/ws`, "https://evil.example")).toBe(403);
  expect(await open(stack.url, "https://evil.example")).toBe(403);
  expect(await open(`${page}/ws/otel`)).toBe(101);
  expect(await open(`${page}/nothing`)).toBe(404);
  const client = connect({ dialer: wsDialer(`${page}/ws`) });
  expect(await client.trigger("engine::workers::list", {})).toMatchObject({ workers: expect.any(Array) });
  await client.close({ drain_ms: 0 });
});

test("one worker runs alone against a running engine, in watch mode, and ends with Ctrl+C", async () => {
  await using stack = await startStack({ config: (text) => text.replace(/ {2}- name: session\n/, "") });
  const script = join(REPO, "node_modules/.bin/tsx");
  const child = spawn(script, ["watch", "--clear-screen=false", join(REPO, "workers/session/src/index.ts")], {
    env: { PATH: process.env["PATH"] ?? "", III_URL: stack.url, HOME: stack.folder },
    stdio: "ignore",
  });
  await until("session to announce itself", async () => {
    const { workers } = await stack.trigger<{ workers: { name: string | null }[] }>("engine::workers::list", {});
    return workers.some((worker) => worker.name === "session") || undefined;
  });
  const ended = new Promise((done) => child.on("exit", done));
  child.kill("SIGINT");
  await ended;
});

/** A worker on the official client that ignores what its engine does: it would outlive it. */
const FOREIGN = `
import { registerWorker } from "${import.meta.resolve("iii-sdk")}";
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
const iii = registerWorker(process.env.III_URL);
iii.registerFunction("foreign::greet", async ({ who }) => ({ text: "hello " + who }));
setInterval(() => undefined, 1000);
`;

test("a command on the official client is ready by its pid, is served, and does not outlive a killed engine's successor", async () => {
  const entry = "  - name: foreign\n    command: [node, ./foreign.mjs]\n";
  await using stack = await startStack({ config: (text) => text + entry, files: { "foreign.mjs": FOREIGN } });
  expect(await stack.trigger("foreign::greet", { who: "you" })).toEqual({ text: "hello you" });
  const pid = await stack.pid("foreign");
  await stack.kill9("engine", { leaving: [pid] });
  expect(isAlive(pid)).toBe(true);
  await using again = await stack.restart();
  expect(isAlive(pid)).toBe(false);
  expect(await again.pid("foreign")).not.toBe(pid);
  expect(await again.trigger("foreign::greet", { who: "me" })).toEqual({ text: "hello me" });
});

test("U40 a restart into a command that does not exist says so and fails", async () => {
  const entry = "  - name: foreign\n    command: [node, ./foreign.mjs]\n";
  await using stack = await startStack({ config: (text) => text + entry, files: { "foreign.mjs": FOREIGN } });
  const file = join(stack.folder, "config.yaml");
  const env = stack.cliEnv;
  expect(JSON.parse((await iii(["worker", "restart", "foreign", "--json"], env)).stdout)).toMatchObject({
    state: "ready",
    source: "command",
  });
  expect(await stack.trigger("foreign::greet", { who: "you" })).toEqual({ text: "hello you" });
  writeFileSync(file, readFileSync(file, "utf8").replace("[node, ./foreign.mjs]", "[./no-such-command]"));
  const refused = await iii(["worker", "restart", "foreign"], env);
  expect(refused.code).toBe(1);
  expect(refused.stdout).toMatch(/foreign: failed, cannot be started: .*ENOENT/);
});

test("U2, U48 a data folder in use is a conflict, one that cannot hold files a fault of the configuration, in any config", async () => {
  await using stack = await startStack();
  const thin = join(stack.folder, "thin.yaml");
  writeFileSync(thin, "version: 1\n");
  const start = (data: string) =>
    iii(["start"], { III_CONFIG: thin, III_PORT: "0", III_HTTP_PORT: "0", III_DATA_DIR: data, HOME: stack.folder });
  const used = await start(join(stack.folder, "data"));
  expect([used.code, used.stdout]).toEqual([7, ""]);
  expect(used.stderr).toContain("another engine runs on this data folder");
  const file = await start(thin);
  expect([file.code, file.stdout]).toEqual([6, ""]);
  expect(file.stderr).toContain("cannot hold files: a file stands in the place of a folder");
  expect((await start("/proc/none/data")).code).toBe(6);
  expect((await stack.health()).status).toBe(200);
});
