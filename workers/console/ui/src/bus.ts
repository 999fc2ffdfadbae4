// Typed calls on the bus by definition types only: schemas stay out of the page.
import type { FunctionDefinition, Iii } from "@iii/sdk";
import type { z } from "zod";

/** Calls `id`, typed as the definition `F`. Rejects with a BusError. */
export function call<F extends FunctionDefinition>(iii: Iii, id: F["id"], payload: z.input<F["input"]>, timeout_ms = 15_000) {
  return iii.trigger<z.output<F["output"]>>(id, payload, { timeout_ms });
}

/** A random id: printable, without `/`. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
