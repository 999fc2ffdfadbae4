// Makes definitions of functions. One zod schema per shape: type, validation and catalogue entry derive from it.
import { z } from "zod";
import type { ArgumentKind, FunctionDefinition } from "./definition.ts";
import { FunctionId } from "./protocol/ids.ts";

/** How a function may be run again, as it declares in its registration metadata. The default is the careful one. */
export const EffectPolicy = z.object({
  /** `none`: changes nothing. `idempotent`: the same idempotency key has one effect. `at_most_once`: never run twice. */
  effect: z.enum(["none", "idempotent", "at_most_once"]),
  /** May run beside other calls of the same batch. */
  parallel: z.boolean(),
  /** A function that answers whether an interrupted call took effect. */
  probe: z.string().optional(),
  /** How long one run may take, in ms. */
  timeout_ms: z.number().positive().optional(),
});
export type EffectPolicy = z.infer<typeof EffectPolicy>;

/**
 * Describes a function: its id, one sentence about it, and the schemas of what goes in and out.
 * Schemas must render as JSON Schema: no `z.custom`, no `.transform`.
 */
export function defineFunction<I extends z.ZodType, O extends z.ZodType>(spec: {
  id: string;
  about: string;
  input: I;
  output: O;
  effect?: EffectPolicy["effect"];
  parallel?: boolean;
  probe?: string;
  timeout_ms?: number;
  /** What the arguments are, for those who judge a call before it is made. */
  arguments?: Readonly<Record<string, ArgumentKind>>;
  /** Hidden from `engine::functions::list` unless asked for. */
  internal?: boolean;
}): FunctionDefinition<I, O> {
  const { id, about, input, output, ...rest } = spec;
  return { kind: "function", id: FunctionId.parse(id), about, input, output, metadata: Object.freeze({ ...rest }) };
}
