// The tool that a benchmarked turn calls, as a worker of its own: answers with what it got.
import { defineFunction, defineWorker } from "@iii/sdk";
import { run } from "@iii/sdk/run";
import { z } from "zod";

const echo = defineFunction({
  id: "bench::echo",
  about: "Answer with the payload.",
  input: z.object({ text: z.string() }),
  output: z.object({ text: z.string() }),
  effect: "none",
});

const worker = defineWorker({ name: "bench-tool", config: z.object({}), register: (on) => on(echo, (input) => input) });
await run(worker);
