// The engine alone in a process: real core, built-ins, bus port. Arguments: `memory`, or the folder of a durable store.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { attachBus, type Builtin, createEngine, defaultBuiltins, openStore } from "@iii/engine";
import { defaultEngineConfig } from "@iii/engine/config";
import { defineFunction, silentLogger, systemClock, systemRandom } from "@iii/sdk";
import { z } from "zod";
import { play } from "../support/processes.ts";

const [folder = "memory"] = process.argv.slice(2);
const store = openStore(folder === "memory" ? "memory" : "sqlite", folder);
const config = defaultEngineConfig({ queues: { jobs: { concurrency: 64 } } });

/** What a call costs that ends inside the engine. */
const inside: Builtin = {
  name: "bench",
  install(host) {
    const echo = defineFunction({ id: "bench::inside", about: "Answer with the payload.", input: z.unknown(), output: z.unknown() });
    host.handle("bench", echo, (input) => input);
    return {};
  },
};

const engine = createEngine({
  config,
  deps: { clock: systemClock, random: systemRandom, store, log: silentLogger, fatal: () => process.exit(1) },
  builtins: [...defaultBuiltins(config), inside],
});
await engine.start();
const server = createServer();
attachBus(server, engine, { allowOrigin: () => true });
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  const delay = monitorEventLoopDelay({ resolution: 1 });
  play(
    { url: `ws://127.0.0.1:${port}` },
    {
      commits: () => store.stats().commits,
      watchDelay: () => {
        delay.reset();
        delay.enable();
      },
      /** p99 of the lateness of a 1 ms timer, in ms. */
      delay: () => {
        delay.disable();
        return delay.percentile(99) / 1e6;
      },
    },
  );
});
