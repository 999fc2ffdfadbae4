// The stack as people start it: under a parent that starts it again.
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { iii, isAlive, processesOf, type Stack, startStack, until } from "../support/stack.ts";
import { ended, parked, post, resolve, transcript } from "../support/turns.ts";

function freePort(): Promise<string> {
  return new Promise((done) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => done(String(typeof address === "object" && address !== null ? address.port : 0)));
    });
  });
}

const enginePid = (stack: Stack): number => {
  const { pid } = JSON.parse(readFileSync(join(stack.folder, "data/engine.json"), "utf8")) as { pid: number };
  return pid;
};

test("a stack that is killed comes back by itself on the same ports; a parked call, the page's key and our connection go on", async () => {
  await using stack = await startStack({ parent: true, env: { III_PORT: await freePort(), III_HTTP_PORT: await freePort() } });
  await post(stack, "s1", 'call shell::fs::ls {"path":"."}');
  const [before] = await parked(stack, "s1");
  const first = enginePid(stack);
  process.kill(first, "SIGKILL");
  await until("another engine", () => (isAlive(first) || enginePid(stack) === first ? undefined : true));
  await until("every worker to be ready", async () => (await stack.health()).status === 200 || undefined);
  expect(stack.output().stderr).toContain("the stack ended with SIGKILL");
  const [held] = await parked(stack, "s1");
  expect(held).toEqual({ ...before, remaining_ms: expect.any(Number) });
  if (held === undefined) throw new Error("unreachable");
  expect(await resolve(stack, held, "allow")).toEqual({ ok: true });
  expect(await ended(stack, "s1")).toMatchObject({ state: "stopped" });
  expect((await transcript(stack, "s1")).results).toMatchObject([{ is_error: false }]);
  const { page_key } = JSON.parse(readFileSync(join(stack.folder, "data/engine.json"), "utf8")) as { page_key: string };
  expect(stack.pageKey).toBe(`#key=${page_key}`);
  expect(await stack.stop()).toBe(0);
  expect(processesOf(stack.folder)).toEqual([]);
});

test("nothing is left of a stack whose parent is killed", async () => {
  await using stack = await startStack({ parent: true });
  process.kill(await stack.pid("engine"), "SIGKILL");
  await until("the end of every process", () => processesOf(stack.folder).length === 0 || undefined, 20_000);
});

test("a fault of the configuration ends the parent with its code", async () => {
  await using stack = await startStack();
  const { code, stderr } = await iii(["start", "-c", join(stack.folder, "none.yaml")], { HOME: stack.folder });
  expect(code).toBe(6);
  expect(stderr).not.toContain("started again");
});
