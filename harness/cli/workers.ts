// `iii worker …`: the workers of config.yaml, seen and changed through the supervisor.
import { type WorkerStatus, workerList, workerRestart, workerStart, workerStop, workersList } from "@iii/engine/contract";
import { BusError } from "@iii/sdk";
import { withEngine } from "./connection.ts";
import { type Output, table } from "./output.ts";

type Connected = { readonly name: string | null; readonly pid: number | null; readonly functions: readonly string[] };

/** How many functions it serves now. Foreign clients announce a name of their own: they are known by their process. */
function served(worker: WorkerStatus, connected: readonly Connected[]): string {
  if (worker.state !== "ready") return "-";
  const byName = connected.find((one) => one.name === worker.name);
  const found = byName ?? (worker.source === "bundled" ? undefined : connected.find((one) => one.pid === worker.pid));
  return found === undefined ? "-" : String(found.functions.length);
}

function row(worker: WorkerStatus, connected: readonly Connected[]): string[] {
  const { name, state, source, pid, restarts, reason } = worker;
  return [name, state, source, String(pid ?? "-"), String(restarts), served(worker, connected), (reason ?? "").replaceAll("\n", " ")];
}

export async function listWorkers(url: string, output: Output): Promise<void> {
  const [workers, connected] = await withEngine(url, async (iii) => {
    const [mine, all] = await Promise.all([iii.trigger(workerList, {}), iii.trigger(workersList, {})]);
    return [mine.workers, all.workers] as const;
  });
  const rows = () => workers.map((worker) => row(worker, connected));
  output.data(workers, () => table([["NAME", "STATE", "SOURCE", "PID", "RESTARTS", "FUNCTIONS", "REASON"], ...rows()]));
}

const COMMANDS = { start: workerStart, stop: workerStop, restart: workerRestart } as const;
const SETTLE_MS = 15_000;

/** Runs the command, then waits until the worker is where it was asked to be, or cannot get there. */
export async function workerCommand(url: string, output: Output, verb: keyof typeof COMMANDS, name: string): Promise<void> {
  const worker = await withEngine(url, async (iii) => {
    let { worker: status } = await iii.trigger(COMMANDS[verb], { name });
    const until = Date.now() + SETTLE_MS;
    while (status.state === "starting" && Date.now() < until) {
      await new Promise((done) => setTimeout(done, 50));
      const { workers } = await iii.trigger(workerList, {});
      status = workers.find((one) => one.name === name) ?? status;
    }
    return status;
  });
  output.data(worker, () => `${worker.name}: ${worker.state}, ${worker.reason ?? worker.source}`);
  if (worker.state === "starting") throw new BusError("TIMEOUT", `${name} is not ready after ${SETTLE_MS / 1_000} s: ${worker.reason}`);
  if (worker.state === "failed" || worker.state === "crash_loop") process.exitCode = 1;
}
