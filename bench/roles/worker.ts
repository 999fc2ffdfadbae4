// The far end of every call: answers with what it got. Asked for `roundTrips`, it times calls of its own into the engine. Arguments: `bus` (traced or not) or `relay`, and the broker's URL.
import { connect } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { startTelemetry } from "@iii/sdk/trace";
import { WebSocket } from "ws";
import { latencies } from "../support/load.ts";
import { play } from "../support/processes.ts";

const [kind = "", url = ""] = process.argv.slice(2);

async function serveBus(traced: boolean): Promise<void> {
  const dialer = wsDialer(url);
  const telemetry = traced ? startTelemetry({ dialer }) : undefined;
  const iii = connect({ dialer, spans: telemetry?.spans("bench") });
  iii.registerFunction(traced ? "bench::traced" : "bench::echo", (input) => input);
  // Answered after the registration has arrived.
  await iii.trigger("engine::functions::list", {});
  play({}, { roundTrips: () => latencies((n) => iii.trigger("bench::inside", { n }), 500) });
}

function serveRelay(): void {
  const socket = new WebSocket(`${url}/worker`, { perMessageDeflate: false });
  socket.on("message", (frame) => {
    const { id, data } = JSON.parse(frame.toString()) as { id: number; data: unknown };
    socket.send(JSON.stringify({ id, data }));
  });
  socket.on("open", () => play({}));
}

if (kind === "relay") serveRelay();
else await serveBus(kind === "traced");
