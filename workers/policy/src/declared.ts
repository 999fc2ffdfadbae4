// What a function says about its arguments, asked of the engine. Knows no function by name.
import { functionsInfo } from "@iii/engine/contract";
import type { Iii } from "@iii/sdk";
import { type Declared, declaredArguments } from "./normal-form.ts";

/** The declaration of the function that serves this id now; undefined when nobody does, or it declares nothing. */
export async function declarationOf(iii: Iii, function_id: string): Promise<Declared | undefined> {
  const answer = await iii.trigger(functionsInfo, { function_ids: [function_id] });
  const found = "functions" in answer ? answer.functions[0] : answer;
  return found === undefined || "error" in found ? undefined : declaredArguments(found.metadata);
}
