// The wire of the scripted model: small JSON events in a server-sent event stream, and their fold.
import { type FoldEvent, type Incoming, shown, type Words } from "@iii/provider-kit";
import { z } from "zod";

const Wire = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), block: z.int(), text: z.string() }),
  z.object({ type: z.literal("call"), block: z.int(), name: z.string(), arguments: z.string() }),
  z.object({ type: z.literal("close"), block: z.int() }),
  z.object({ type: z.literal("end"), input: z.int(), output: z.int(), reason: z.enum(["end", "function_call"]) }),
]);
export type Wire = z.infer<typeof Wire>;

export const words: Words = { end: "end", function_call: "function_call" };

function eventsOf(event: Wire): readonly FoldEvent[] {
  switch (event.type) {
    case "text":
      return [{ type: "text", block: event.block, delta: event.text }];
    case "call":
      return [{ type: "call", block: event.block, name: event.name, delta: event.arguments }];
    case "close":
      return [{ type: "close", block: event.block }];
    case "end":
      return [
        { type: "usage", usage: { input: event.input, output: event.output } },
        { type: "end", word: event.reason },
        { type: "closing" },
      ];
  }
}

/** No state: each event stands for itself. */
export function fold(state: null, { value }: Incoming): readonly [null, readonly FoldEvent[]] {
  const { data } = Wire.safeParse(value);
  return [state, data === undefined ? [{ type: "unknown", what: shown(value) }] : eventsOf(data)];
}
