// `iii worker …`: the workers of config.yaml, seen and changed through the supervisor.
import { type WorkerStatus, workerList, workerRestart, workerStart, workerStop } from "@iii/engine/contract";
import { withEngine } from "./connection.ts";
import { type Output, table } from "./output.ts";

function row(worker: WorkerStatus): string[] {
  return [worker.name, worker.state, worker.source, String(worker.pid ?? "-"), String(worker.restarts), worker.reason ?? ""];
}

export async function listWorkers(url: string, output: Output): Promise<void> {
  const { workers } = await withEngine(url, (iii) => iii.trigger(workerList, {}));
  output.data(workers, () => table([["NAME", "STATE", "SOURCE", "PID", "RESTARTS", "REASON"], ...workers.map(row)]));
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
  output.data(worker, () => `${worker.name}: ${worker.state}${worker.reason === null ? "" : ` (${worker.reason})`}`);
  if (worker.state === "failed" || worker.state === "crash_loop") process.exitCode = 1;
}
