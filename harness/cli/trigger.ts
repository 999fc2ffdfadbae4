// `iii trigger`: one call by name; an id that nobody serves is answered with the nearest one that is.
import { functionsList } from "@iii/engine/contract";
import { BusError, type Iii, nearest, toBusError } from "@iii/sdk";

async function nearName(iii: Iii, id: string): Promise<string | undefined> {
  const { functions } = await iii.trigger(functionsList, {});
  return nearest(
    id,
    functions.map((one) => one.function_id),
  );
}

/** @throws BusError as the call does */
export async function callByName(iii: Iii, id: string, payload: unknown, timeout_ms: number): Promise<unknown> {
  try {
    return await iii.trigger(id, payload, { timeout_ms });
  } catch (thrown) {
    const error = toBusError(thrown);
    if (error.code !== "function_not_found") throw error;
    const meant = await nearName(iii, id).catch(() => undefined);
    if (meant === undefined || meant === id) throw error;
    throw new BusError(error.code, `${error.message}; did you mean '${meant}'?`, { cause: error, details: error.details });
  }
}
