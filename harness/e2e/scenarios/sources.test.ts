// Where a worker may come from: a package, a folder, a process that somebody else starts. The worker here uses no SDK at all:
// a WebSocket and four JSON frames are enough.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startStack, until } from "../support/stack.ts";

/** A worker in plain JavaScript: registers `<name>::where`, announces itself, answers with its folder's name and its config. */
const BARE = `
const name = process.env.III_WORKER_NAME ?? "outside";
const socket = new WebSocket(process.env.III_URL);
const send = (frame) => socket.send(JSON.stringify(frame));
socket.onopen = () => {
  send({ type: "registerfunction", id: name + "::where", description: "Says where it came from." });
  const data = { name, pid: process.pid, runtime: "node", version: "1.0.0" };
  send({ type: "invokefunction", function_id: "engine::workers::register", action: { type: "void" }, data });
};
socket.onmessage = ({ data }) => {
  const frame = JSON.parse(data);
  if (frame.type !== "invokefunction") return;
  const result = { from: SOURCE, config: JSON.parse(process.env.III_WORKER_CONFIG ?? "{}") };
  send({ type: "invocationresult", invocation_id: frame.invocation_id, function_id: frame.function_id, result });
};
socket.onclose = () => process.exit(0);
`;

const CONFIG = `version: 1
engine: { port: "\${III_PORT:-0}", http: { port: "\${III_HTTP_PORT:-0}" }, data: "\${III_DATA_DIR:-.iii}" }
workers:
  - name: packed
    package: bare-worker
    config: { size: 3 }
  - name: placed
    path: ./bare
  - name: outside
    external: true
`;

const MANIFEST = JSON.stringify({ name: "bare-worker", version: "1.0.0", type: "module", main: "index.js" });
const worker = (source: string): string => BARE.replace("SOURCE", JSON.stringify(source));
const FILES = {
  "node_modules/bare-worker/package.json": MANIFEST,
  "node_modules/bare-worker/index.js": worker("package"),
  "bare/package.json": MANIFEST,
  "bare/index.js": worker("folder"),
};

test("A16 a worker from a package, one from a folder and one started by hand are ready, served, and told apart", async () => {
  await using stack = await startStack({ config: CONFIG, files: FILES, ready: false });
  await until("the two that the engine starts", async () => {
    const { body } = await stack.health();
    return (body.workers.length === 2 && body.waiting.join() === "outside") || undefined;
  });
  expect(await stack.trigger("packed::where", {})).toEqual({ from: "package", config: { size: 3 } });
  expect(await stack.trigger("placed::where", {})).toMatchObject({ from: "folder" });
  const env = { PATH: process.env["PATH"] ?? "", III_URL: stack.url, TMPDIR: stack.folder };
  const outside = spawn(process.execPath, [join(stack.folder, "bare/index.js")], { env, stdio: "ignore" });
  await until("the one started by hand", async () => (await stack.health()).status === 200 || undefined);
  expect(await stack.trigger("outside::where", {})).toMatchObject({ from: "folder" });
  outside.kill("SIGKILL");
  await until("its name among those waited for", async () => (await stack.health()).body.waiting.includes("outside") || undefined);
});
