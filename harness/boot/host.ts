// The host process (`engine.bundled: process`): all bundled workers in one process beside the engine's.
// It is started before the bus is there, so that loading and the engine's own start go on at the same time.
import { HostCommand } from "@iii/engine/supervisor";
import { createLogger, wsDialer } from "@iii/sdk/run";
import { type ProcessTelemetry, startTelemetry } from "@iii/sdk/trace";
import { Hosting } from "./hosting.ts";

const log = createLogger({ name: "host" });
let telemetry: ProcessTelemetry | undefined;

const hosting = new Hosting({
  around({ name, url }) {
    const dialer = wsDialer(url);
    telemetry ??= startTelemetry({ dialer });
    return { dialer, log: log.child({ worker: name }), spans: telemetry.spans(name) };
  },
  report(message) {
    if (process.connected) process.send?.(message);
  },
});

let ending = false;
function end(): void {
  if (ending) return;
  ending = true;
  hosting
    .end()
    .then(async () => telemetry?.stop())
    .then(
      () => process.exit(0),
      () => process.exit(1),
    );
}

process.on("message", (value) => hosting.obey(HostCommand.parse(value)));
process.on("SIGTERM", end);
process.on("SIGINT", end);
process.on("disconnect", end);
// Both end when the engine's process is gone, however it went.
process.stdin.on("close", end).resume();
