import { type Logger, silentLogger } from "@iii/sdk";
import { ManualClock } from "@iii/sdk/testing";
import { expect, test } from "vitest";
import { nextStart } from "../../src/builtin/supervisor/keeper.ts";
import type { ChildEvents, HostCommand, Plan, ProcessSpec, Spawner, WorkerPlan } from "../../src/builtin/supervisor/port.ts";
import { type Announced, Supervisor } from "../../src/builtin/supervisor/supervisor.ts";

interface FakeChild {
  readonly name: string;
  readonly pid: number;
  readonly events: ChildEvents;
  readonly sent: HostCommand[];
  readonly signals: string[];
}

/** Processes that only do what a test tells them; SIGKILL alone always ends them. */
function fakeSpawner(): Spawner & { children: FakeChild[]; last(name: string): FakeChild; running: Set<number> } {
  const children: FakeChild[] = [];
  const running = new Set<number>();
  return {
    children,
    running,
    last(name) {
      const found = children.findLast((child) => child.name === name);
      if (found === undefined) throw new Error(`no process ${name}`);
      return found;
    },
    spawn(spec, events) {
      const child: FakeChild = { name: spec.argv[0] ?? "", pid: 100 + children.length, events, sent: [], signals: [] };
      children.push(child);
      running.add(child.pid);
      return {
        pid: child.pid,
        send: (message) => child.sent.push(message),
        kill(signal) {
          child.signals.push(signal);
          if (signal === "SIGKILL" && running.delete(child.pid)) events.exit({ code: null, signal });
        },
      };
    },
  };
}

const spec = (name: string, ipc = false): ProcessSpec => ({ argv: [name], env: {}, cwd: "/", ipc });
const restart = { policy: "on-failure", backoff_ms: 500 } as const;
const bundled = (name: string): WorkerPlan => ({
  name,
  source: "bundled",
  bundled: { name, module: `/w/${name}/register.ts`, config: {}, url: "ws://bus", root: "/" },
  restart,
});
const own = (name: string): WorkerPlan => ({ name, source: "isolated", process: spec(name), restart });

/** Keeps what is said at `warn` and above. */
function capturingLogger(): { logger: Logger; said: string[] } {
  const said: string[] = [];
  const keep = (_facts: object, text: string) => void said.push(text);
  const logger: Logger = { ...silentLogger, warn: keep, error: keep, child: () => logger };
  return { logger, said };
}

function setup(workers: readonly WorkerPlan[], { prepare = false } = {}) {
  const clock = new ManualClock();
  const spawner = fakeSpawner();
  let plan: Plan = { host: spec("host", true), workers };
  let announced: readonly Announced[] = [];
  const log = capturingLogger();
  const lines: string[] = [];
  const supervisor = new Supervisor({
    clock,
    spawner,
    log: log.logger,
    announced: () => announced,
    onLine: (_process, _stream, text) => void lines.push(text),
    source: { read: async () => ({ ok: true, plan }) },
  });
  if (prepare) supervisor.prepare(plan.host, ["/w/policy/register.ts"]);
  supervisor.startAll(plan);
  let connections = 0;
  /** Replaces all connections by new ones that announce themselves so. */
  const announce = (all: readonly Omit<Announced, "id">[]) => {
    connections += 1;
    announced = all.map((one, at) => ({ ...one, id: `c${connections}.${at}` }));
  };
  return {
    clock,
    spawner,
    supervisor,
    announce,
    lines,
    said: log.said,
    edit: (next: readonly WorkerPlan[]) => (plan = { ...plan, workers: next }),
  };
}
const stateOf = (supervisor: Supervisor, name: string) => supervisor.list().find((worker) => worker.name === name);

test("bundled workers share the host process, and an isolated one has its own", () => {
  const { spawner } = setup([bundled("policy"), bundled("session"), own("shell")]);
  expect(spawner.children.map((child) => child.name)).toEqual(["host", "shell"]);
  expect(spawner.last("host").sent.map((command) => (command.type === "start" ? command.worker.name : ""))).toEqual(["policy", "session"]);
});

test("a host that was prepared is the one that runs the plan; its successor is not told to prepare", async () => {
  const { clock, spawner } = setup([bundled("policy")], { prepare: true });
  expect(spawner.children).toHaveLength(1);
  expect(spawner.last("host").sent.map((command) => command.type)).toEqual(["prepare", "start"]);
  spawner.last("host").events.exit({ code: 1, signal: null });
  await clock.advance(500);
  expect(spawner.last("host").sent.map((command) => command.type)).toEqual(["start"]);
});

test("a worker is ready once it has announced itself, by its name or by the pid of its process", () => {
  const { announce, spawner, supervisor } = setup([bundled("policy"), own("shell")]);
  expect(supervisor.list().map((worker) => worker.state)).toEqual(["starting", "starting"]);
  announce([
    { name: "policy", pid: 1 },
    { name: "some-host:1", pid: spawner.last("shell").pid },
  ]);
  expect(supervisor.list().map((worker) => worker.state)).toEqual(["ready", "ready"]);
});

test("a dead host takes its workers out of ready, and a new one gets all of them again", async () => {
  const { announce, clock, spawner, supervisor } = setup([bundled("policy"), own("shell")]);
  announce([{ name: "policy", pid: 1 }]);
  spawner.last("host").events.exit({ code: null, signal: "SIGKILL" });
  expect(stateOf(supervisor, "policy")).toMatchObject({ state: "failed", reason: "was ended by SIGKILL" });
  await clock.advance(499);
  expect(spawner.children).toHaveLength(2);
  await clock.advance(1);
  expect(spawner.last("host").sent).toHaveLength(1);
  // The dead process's connection is still there for a moment: it counts no more.
  expect(stateOf(supervisor, "policy")?.state).not.toBe("ready");
  announce([{ name: "policy", pid: 1 }]);
  expect(stateOf(supervisor, "policy")).toMatchObject({ state: "ready", restarts: 1 });
});

test("a worker that cannot start is reported with its reason, tried again, and the rest stay up", async () => {
  const { announce, clock, spawner, supervisor } = setup([bundled("policy"), bundled("session")]);
  const host = spawner.last("host");
  announce([{ name: "session", pid: 1 }]);
  host.events.message({ type: "failed", name: "policy", reason: "iii-permissions.yaml:3:1 broken" });
  expect(stateOf(supervisor, "policy")).toMatchObject({ state: "failed", reason: "iii-permissions.yaml:3:1 broken" });
  expect(stateOf(supervisor, "session")?.state).toBe("ready");
  await clock.advance(500);
  expect(host.sent.at(-1)).toMatchObject({ type: "start", worker: { name: "policy" } });
  host.events.message({ type: "started", name: "policy" });
  announce([{ name: "policy", pid: 1 }]);
  expect(stateOf(supervisor, "policy")).toMatchObject({ state: "ready", reason: null });
});

test.each([
  ["the first crash waits the base time", [0], 1, { delay_ms: 500, loop: false }],
  ["each further one twice as long", [0, 1, 2], 3, { delay_ms: 2_000, loop: false }],
  ["never longer than ten seconds", [0], 30, { delay_ms: 10_000, loop: false }],
  ["more than five in thirty seconds is a crash loop", [0, 1, 2, 3, 4, 5], 6, { delay_ms: 30_000, loop: true }],
])("%s", (_title, crashes, streak, expected) => {
  expect(nextStart(crashes, streak, 10, 500)).toEqual(expected);
});

test("a crash loop is named, keeps the last words of the process, and is still tried", async () => {
  const { announce, clock, spawner, supervisor } = setup([own("shell")]);
  for (let crash = 0; crash < 6; crash += 1) {
    spawner.last("shell").events.line("stderr", `crash ${crash}`);
    spawner.last("shell").events.exit({ code: 1, signal: null });
    if (crash < 5) await clock.advance(500 * 2 ** crash);
  }
  expect(stateOf(supervisor, "shell")).toMatchObject({ state: "crash_loop", reason: "exited with code 1" });
  expect(stateOf(supervisor, "shell")?.stderr).toContain("crash 5");
  await clock.advance(30_000);
  expect(spawner.children.filter((child) => child.name === "shell")).toHaveLength(7);
  expect(stateOf(supervisor, "shell")).toMatchObject({ state: "failed", reason: "exited with code 1" });
  announce([{ name: "shell", pid: 1 }]);
  expect(stateOf(supervisor, "shell")).toMatchObject({ state: "ready", reason: null });
});

test("stop asks first, kills the group after ten seconds, and does not start it again", async () => {
  const { clock, spawner, supervisor } = setup([own("shell")]);
  const stopped = supervisor.stop("shell");
  expect(spawner.last("shell").signals).toEqual(["SIGTERM"]);
  await clock.advance(10_000);
  expect((await stopped).state).toBe("stopped");
  expect(spawner.last("shell").signals).toEqual(["SIGTERM", "SIGKILL"]);
  await clock.advance(60_000);
  expect(spawner.children.filter((child) => child.name === "shell")).toHaveLength(1);
});

test("everyone who stops a bundled worker hears that it has stopped, also when someone starts it meanwhile", async () => {
  const { spawner, supervisor } = setup([bundled("policy")]);
  const host = spawner.last("host");
  let heard = 0;
  for (let n = 0; n < 2; n += 1) void supervisor.stop("policy").then(() => (heard += 1));
  await expect.poll(() => host.sent.at(-1)).toEqual({ type: "stop", name: "policy" });
  await supervisor.start("policy");
  host.events.message({ type: "stopped", name: "policy" });
  await expect.poll(() => heard).toBe(2);
});

test("restart applies the file as it is now, also when the worker moves to another process", async () => {
  const { spawner, supervisor, edit } = setup([bundled("policy")]);
  const host = spawner.last("host");
  edit([own("policy")]);
  const restarted = supervisor.restart("policy");
  await Promise.resolve();
  await expect.poll(() => host.sent.at(-1)).toEqual({ type: "stop", name: "policy" });
  host.events.message({ type: "stopped", name: "policy" });
  expect(await restarted).toMatchObject({ source: "isolated", state: "starting" });
  expect(spawner.last("policy").pid).toBeGreaterThan(0);
});

test("a broken file changes nothing and names its faults", async () => {
  const clock = new ManualClock();
  const spawner = fakeSpawner();
  const supervisor = new Supervisor({
    clock,
    spawner,
    log: silentLogger,
    announced: () => [],
    source: { read: async () => ({ ok: false, faults: ["config.yaml:7:5 unknown key"] }) },
  });
  supervisor.startAll({ host: spec("host", true), workers: [own("shell")] });
  await expect(supervisor.restart("shell")).rejects.toMatchObject({
    code: "config_invalid",
    details: { faults: ["config.yaml:7:5 unknown key"] },
  });
  expect(spawner.last("shell").signals).toEqual([]);
});

test("an unknown worker is not found, and the known ones are named", async () => {
  const { supervisor } = setup([own("shell")]);
  await expect(supervisor.stop("shel")).rejects.toMatchObject({ code: "NOT_FOUND", details: { workers: ["shell"] } });
});

test("U40 after a restart only what connects afterwards makes a worker ready, in the host and in a process of its own", async () => {
  const { announce, spawner, supervisor } = setup([bundled("policy"), own("shell")]);
  announce([
    { name: "policy", pid: 1 },
    { name: "shell", pid: spawner.last("shell").pid },
  ]);
  const policy = supervisor.restart("policy");
  await expect.poll(() => spawner.last("host").sent.at(-1)).toEqual({ type: "stop", name: "policy" });
  spawner.last("host").events.message({ type: "stopped", name: "policy" });
  expect((await policy).state).toBe("starting");
  const shell = supervisor.restart("shell");
  await expect.poll(() => spawner.last("shell").signals).toEqual(["SIGTERM"]);
  spawner.last("shell").events.exit({ code: 0, signal: null });
  expect((await shell).state).toBe("starting");
  expect(supervisor.list().map((worker) => worker.state)).toEqual(["starting", "starting"]);
  announce([
    { name: "policy", pid: 1 },
    { name: "some-host:1", pid: spawner.last("shell").pid },
  ]);
  expect(supervisor.list().map((worker) => worker.state)).toEqual(["ready", "ready"]);
});

test("U40 an old connection that announces itself again is still another process's", async () => {
  const { announce, spawner, supervisor } = setup([own("shell")]);
  announce([{ name: "shell", pid: 7 }]);
  spawner.last("shell").events.exit({ code: null, signal: "SIGKILL" });
  expect(stateOf(supervisor, "shell")).toMatchObject({ state: "failed", reason: "was ended by SIGKILL" });
});

test("U40 a command that cannot be started has failed, with the reason, whatever else has announced itself", async () => {
  const { announce, spawner, supervisor } = setup([own("shell")]);
  announce([{ name: "shell", pid: 7 }]);
  spawner.last("shell").events.exit({ code: null, signal: null, reason: "cannot be started: spawn nope ENOENT" });
  expect(stateOf(supervisor, "shell")).toMatchObject({ state: "failed", reason: "cannot be started: spawn nope ENOENT" });
});

test("U7 a worker that cannot start is told once with its place and the next try, until its reason changes", async () => {
  const { clock, spawner, said } = setup([bundled("policy")]);
  const fail = (reason: string) => spawner.last("host").events.message({ type: "failed", name: "policy", reason });
  fail("workers/policy/src/register.ts:3:14: Expression expected");
  await clock.advance(500);
  fail("workers/policy/src/register.ts:3:14: Expression expected");
  await clock.advance(1_000);
  fail("workers/policy/src/register.ts:9:1: Expression expected");
  expect(said).toEqual([
    "policy cannot start: workers/policy/src/register.ts:3:14: Expression expected; retry in 0.5 s",
    "policy cannot start: workers/policy/src/register.ts:9:1: Expression expected; retry in 2 s",
  ]);
});

test("U7 a process that dies the same way again says so once, and its last words are not repeated", async () => {
  const { clock, spawner, said, lines } = setup([own("shell")]);
  for (let life = 0; life < 3; life += 1) {
    spawner.last("shell").events.line("stderr", "file.ts:3: Expression expected");
    spawner.last("shell").events.exit({ code: 1, signal: null });
    await clock.advance(10_000);
  }
  expect(lines).toEqual(["file.ts:3: Expression expected"]);
  expect(said).toEqual(["shell: process exited with code 1; retry in 0.5 s"]);
});

test("U7 a module that an own process cannot load is its reason, with file, line and column, and its 25 lines are told once", async () => {
  const { announce, clock, spawner, supervisor, lines } = setup([own("shell")]);
  const frames = Array.from({ length: 18 }, (_, at) => `    at frame (node:internal/${at}:1:1)`);
  const written = [
    "node:internal/modules/run_main:107",
    "    triggerUncaughtException(",
    "    ^",
    "file:///w/notes/src/register.ts:20",
    "let a = ;",
    "        ^",
    "SyntaxError [ERR_INVALID_TYPESCRIPT_SYNTAX]: Expression expected",
    ...frames,
  ];
  for (let life = 0; life < 3; life += 1) {
    for (const line of written) spawner.last("shell").events.line("stderr", line);
    spawner.last("shell").events.exit({ code: 1, signal: null });
    expect(stateOf(supervisor, "shell")?.reason).toBe("exited with code 1: /w/notes/src/register.ts:20:9: Expression expected");
    await clock.advance(10_000);
  }
  expect(lines).toEqual(written);
  announce([{ name: "shell", pid: spawner.last("shell").pid }]);
  expect(stateOf(supervisor, "shell")?.state).toBe("ready");
  spawner.last("shell").events.exit({ code: null, signal: "SIGKILL" });
  expect(stateOf(supervisor, "shell")?.reason).toBe("was ended by SIGKILL");
});
