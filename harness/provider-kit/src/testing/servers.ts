// Model servers for tests: aimock, a third party's, in its own process; and a loopback one for the faults aimock cannot script.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface ModelServer extends AsyncDisposable {
  readonly url: string;
}

function listening(child: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let output = "";
  const read = (chunk: Buffer) => {
    output += chunk.toString();
    const url = output.match(/listening on (http:\/\/\S+)/)?.[1];
    if (url !== undefined) resolve(url);
  };
  child.stdout?.on("data", read);
  child.stderr?.on("data", read);
  child.once("exit", (code) => reject(new Error(`aimock ended with ${code}: ${output}`)));
  child.once("error", reject);
  return promise;
}

/** Starts aimock with these fixtures; strict, so that a request nobody thought of fails. */
export async function aimock(fixtures: readonly object[]): Promise<ModelServer> {
  const folder = await mkdtemp(join(tmpdir(), "aimock-"));
  const file = join(folder, "fixtures.json");
  await writeFile(file, JSON.stringify({ fixtures }));
  const cli = join(dirname(fileURLToPath(import.meta.resolve("@copilotkit/aimock"))), "cli.js");
  const child = spawn(process.execPath, [cli, "-p", "0", "-f", file, "--strict", "--validate-on-load"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
  });
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
    await rm(folder, { recursive: true });
  };
  try {
    return { url: await listening(child), [Symbol.asyncDispose]: stop };
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}

export interface Loopback extends ModelServer {
  /** Bodies of the requests so far. */
  readonly bodies: unknown[];
  /** Resolves when the client has closed a connection before its answer was complete. */
  readonly hungUp: Promise<void>;
}

/** A server on loopback whose answers the test writes itself. */
export async function loopback(answer: (response: ServerResponse, count: number) => void): Promise<Loopback> {
  const bodies: unknown[] = [];
  const hungUp = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    response.on("close", () => response.writableFinished || hungUp.resolve());
    request.on("end", () => {
      bodies.push(JSON.parse(Buffer.concat(parts).toString()));
      answer(response, bodies.length);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  };
  return { url: `http://127.0.0.1:${port}`, bodies, hungUp: hungUp.promise, [Symbol.asyncDispose]: stop };
}

export const sseHead = { "content-type": "text/event-stream" } as const;
