// The permissions file against the real shell: what is allowed runs, and no spelling of another call passes for it.
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Stack, startStack } from "../support/stack.ts";
import { ended, parked, post, transcript } from "../support/turns.ts";

const RULES = `version: 1
rules:
  - function: shell::fs::read
    action: allow
    args: { path: { matches: ^docs/ } }
  - function: shell::exec
    action: allow
    args: { command: { equals: echo }, args.0: { equals: hello } }
`;
let stack: Stack;
let count = 0;
beforeAll(async () => {
  stack = await startStack({ permissions: RULES });
  const docs = join(stack.folder, "workspace/docs");
  mkdirSync(docs, { recursive: true });
  writeFileSync(join(docs, "a.txt"), "PUBLIC");
  writeFileSync(join(stack.folder, "workspace/secret.txt"), "SECRET");
  symlinkSync("../secret.txt", join(docs, "link"));
});
afterAll(async () => stack?.[Symbol.asyncDispose]());

const call = async (line: string): Promise<string> => {
  count += 1;
  await post(stack, `s${count}`, `call ${line}`);
  return `s${count}`;
};

test.each([
  ["a path", 'shell::fs::read {"path":"docs/a.txt"}', "PUBLIC"],
  ["a path in another spelling", 'shell::fs::read {"path":".//docs/x/../a.txt","max_bytes":100}', "PUBLIC"],
  ["a command with its arguments", 'shell::exec {"command":"echo","args":["hello"]}', "hello"],
])("K7.5 %s that a rule allows runs unasked: %s", async (_title, line, expected) => {
  const session_id = await call(line);
  expect(await ended(stack, session_id)).toMatchObject({ state: "stopped" });
  expect((await transcript(stack, session_id)).results).toMatchObject([{ is_error: false, text: expect.stringContaining(expected) }]);
});

test.each([
  ["a path that leads out of what is allowed", 'shell::fs::read {"path":"docs/../secret.txt"}'],
  ["escaped dots", 'shell::fs::read {"path":"docs/%2e%2e/secret.txt"}'],
  ["arguments that no rule named", 'shell::exec {"command":"echo","args":["hello","-c","alias.x=!id"]}'],
  ["a folder that no rule named", 'shell::exec {"command":"echo","args":["hello"],"cwd":"docs"}'],
])("K7.5 %s: a person is asked: %s", async (_title, line) => {
  expect(await parked(stack, await call(line))).toHaveLength(1);
});

test("case 92 a link below an allowed path is not followed, whatever the rules say of its name", async () => {
  const session_id = await call('shell::fs::read {"path":"docs/link"}');
  await ended(stack, session_id);
  const { results, text } = await transcript(stack, session_id);
  expect(results).toMatchObject([{ is_error: true, text: expect.stringContaining("link") }]);
  expect(text).not.toContain("SECRET");
});
