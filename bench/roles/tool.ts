// The tools that a benchmarked turn calls, as a worker of their own.
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
/** No rule allows it: a person is asked. */
const asked = defineFunction({ ...echo, id: "bench::asked" });
const long = defineFunction({
  id: "bench::long",
  about: "Answer with a text of so many characters.",
  input: z.object({ size: z.int() }),
  output: z.object({ text: z.string() }),
  effect: "none",
  parallel: true,
});

const worker = defineWorker({
  name: "bench-tool",
  config: z.object({}),
  register(on) {
    on(echo, (input) => input);
    on(asked, (input) => input);
    on(long, ({ size }) => ({ text: "All work and no play. ".repeat(size / 22) }));
  },
});
await run(worker);
