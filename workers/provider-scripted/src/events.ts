// The wire of the scripted model: small JSON events in a server-sent event stream, and their fold.
import type { FoldEvent } from "@iii/provider-kit";
import { z } from "zod";

export const Wire = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), block: z.int(), text: z.string() }),
  z.object({ type: z.literal("call"), block: z.int(), name: z.string(), arguments: z.string() }),
  z.object({ type: z.literal("close"), block: z.int() }),
  z.object({ type: z.literal("end"), input: z.int(), output: z.int(), reason: z.enum(["end", "function_call"]) }),
]);
export type Wire = z.infer<typeof Wire>;

/** No state: each event stands for itself. */
export function fold(state: null, event: Wire): readonly [null, readonly FoldEvent[]] {
  switch (event.type) {
    case "text":
      return [state, [{ type: "text", block: event.block, delta: event.text }]];
    case "call":
      return [state, [{ type: "call", block: event.block, name: event.name, delta: event.arguments }]];
    case "close":
      return [state, [{ type: "close", block: event.block }]];
    case "end":
      return [
        state,
        [
          { type: "usage", usage: { input: event.input, output: event.output } },
          { type: "end", stop: event.reason },
        ],
      ];
  }
}
