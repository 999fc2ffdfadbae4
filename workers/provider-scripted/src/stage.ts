// Plays a script where other providers have a server: an event stream of bytes, in time, ended by the caller's signal.
import type { Opened, Transport } from "@iii/provider-kit";
import type { Clock } from "@iii/sdk";
import { Script } from "./script.ts";

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = clock.setTimer(resolve, ms);
  const onAbort = () => {
    timer.cancel();
    reject(signal.reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}

async function* play(script: Script, clock: Clock, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  if (script.error !== undefined) yield encoder.encode(script.error);
  for (const { after_ms, event } of script.beats) {
    signal.throwIfAborted();
    if (after_ms > 0) await pause(clock, after_ms, signal);
    yield encoder.encode(`data: ${JSON.stringify(event)}\n\n`);
  }
}

/** A transport whose server is the script in the request. */
export function stage(clock: Clock): Transport {
  return (request, signal): Promise<Opened> => {
    const script = Script.parse(request.body);
    return Promise.resolve({ status: script.status, headers: { "content-type": "text/event-stream" }, body: play(script, clock, signal) });
  };
}
