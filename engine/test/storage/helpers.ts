// A worker that records what it is called with, and can be told how to answer.
import { type Call, defineFunction, defineWorker, type TriggerSpec, type WorkerDefinition } from "@iii/sdk";
import { z } from "zod";

export interface Seen {
  readonly input: unknown;
  readonly call: Call;
}

export interface Probe {
  readonly worker: WorkerDefinition<z.ZodObject>;
  readonly seen: Seen[];
  /** The inputs so far. */
  inputs<T = unknown>(): T[];
  /** What the function does; replaceable while the test runs. */
  answer: (input: unknown, call: Call) => unknown;
}

export function probe(id: string, triggers: Omit<TriggerSpec, "function_id">[] = []): Probe {
  const definition = defineFunction({ id, about: "Records its calls.", input: z.unknown(), output: z.unknown() });
  const self: Probe = {
    seen: [],
    inputs: <T>() => self.seen.map(({ input }) => input as T),
    answer: () => null,
    worker: defineWorker({
      name: id.replaceAll(":", "-"),
      config: z.object({}),
      register(on) {
        on(definition, (input, call) => {
          self.seen.push({ input, call });
          return self.answer(input, call);
        });
        for (const trigger of triggers) on.trigger({ ...trigger, function_id: id });
      },
    }),
  };
  return self;
}

/** A promise and its levers. */
export function gate(): { readonly promise: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, open: () => resolve() };
}
