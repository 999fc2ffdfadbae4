// Binds a test to a promise where the id does not stand at the head of its title. `coverage.test.ts` reads the ids from the source.
import { REQUIREMENTS } from "./requirements.ts";

/** Says in a test's body which promises it shows. Throws on an id that is none. */
export function verifies(...ids: readonly string[]): void {
  for (const id of ids) if (!REQUIREMENTS.has(id)) throw new Error(`'${id}' is no requirement`);
}
