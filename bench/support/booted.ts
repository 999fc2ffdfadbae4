// The shipped stack of real processes with the bench's own tool, and what the system says of its processes.
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { connect } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { processesOf, type Stack, type StackOptions, startStack, until } from "../../harness/e2e/support/stack.ts";
import { cpuMs, rssMb } from "./processes.ts";

export interface Boot {
  /** ms from the start of the process to the first answered call, and to a green `/healthz`. */
  readonly answered: number;
  readonly healthy: number;
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

const TOOL = fileURLToPath(new URL("../roles/tool.ts", import.meta.url));
/** `bench::echo` runs at once, `bench::asked` asks a person. */
const RULES = "version: 1\nrules:\n  - bench::echo\n  - bench::long\n";

/** Starts the stack. With `folder` on the data of an earlier one. */
export async function boot(options: Pick<StackOptions, "env" | "folder"> = {}): Promise<{ stack: Stack; boot: Boot }> {
  const port = await freePort();
  const from = performance.now();
  const first = connect({ dialer: wsDialer(`ws://127.0.0.1:${port}`), reconnect: { initial_ms: 5, max_ms: 5 } });
  const answered = first.trigger("engine::functions::list", {}).then(() => performance.now() - from);
  const stack = await startStack({
    ready: false,
    config: (shipped) => `${shipped}\n  - name: bench-tool\n    command: ${JSON.stringify([process.execPath, TOOL])}\n`,
    permissions: RULES,
    ...options,
    env: { ...options.env, III_PORT: String(port) },
  });
  await until("every worker to be ready", async () => (await stack.health()).status === 200 || undefined, 180_000);
  const healthy = performance.now() - from;
  const times = { answered: await answered, healthy };
  await first.close({ drain_ms: 0 });
  return { stack, boot: times };
}

/** CPU time of all processes of a stack so far, ms. */
export const cpuOf = (stack: Stack): number => processesOf(stack.folder).reduce((sum, pid) => sum + cpuMs(pid), 0);

/** Memory of all processes of a stack but the bench's tool and the shell, MB: resident, and with what is shared counted in part. */
export async function memoryOf(stack: Stack): Promise<{ rss: number; pss: number }> {
  const others = await Promise.all([stack.pid("bench-tool"), stack.pid("shell")]);
  const own = processesOf(stack.folder).filter((pid) => !others.includes(pid));
  return { rss: own.reduce((sum, pid) => sum + rssMb(pid), 0), pss: own.reduce((sum, pid) => sum + pssMb(pid), 0) };
}

function pssMb(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) / 1_024;
}

/** Bytes that a process has sent to the disk. */
export function writtenBytes(pid: number): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1] ?? 0);
}
