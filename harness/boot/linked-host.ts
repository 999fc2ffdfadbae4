// A spawner whose host is this process: bundled workers run beside the engine, on linked connections with the rights of their entries.
// Everything else is a process as before.
import { type Engine, linkedDialer } from "@iii/engine";
import type { Child, ChildEvents, Spawner } from "@iii/engine/supervisor";
import { createLogger } from "@iii/sdk/run";
import { Hosting } from "./hosting.ts";

function host(engine: () => Engine, events: ChildEvents): Child {
  const log = createLogger({ name: "host", destination: { write: (line) => events.line("stderr", line.trimEnd()) } });
  let ended = false;
  const exit = (code: number | null, signal: string | null): void => {
    if (ended) return;
    ended = true;
    events.exit({ code, signal });
  };
  const hosting = new Hosting({
    around({ name }) {
      const { telemetry } = engine();
      const own = log.child({ worker: name });
      return {
        dialer: linkedDialer(engine, { principal: { kind: "entry", name } }),
        log: telemetry?.logger(own, name) ?? own,
        spans: telemetry?.spans(name),
      };
    },
    report: (message) => events.message(message),
  });
  return {
    pid: process.pid,
    send(command) {
      if (!ended) hosting.obey(command);
    },
    kill(signal) {
      if (signal === "SIGKILL") exit(null, signal);
      else
        hosting.end().then(
          () => exit(0, null),
          () => exit(1, null),
        );
    },
  };
}

/** `processes` starts whatever is not the host. */
export function linkedSpawner(engine: () => Engine, processes: Spawner): Spawner {
  return { spawn: (spec, events) => (spec.ipc ? host(engine, events) : processes.spawn(spec, events)) };
}
