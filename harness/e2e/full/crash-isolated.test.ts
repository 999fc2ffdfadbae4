// Deaths while the turns run in a process of their own.
import { describe, inject } from "vitest";
import { survivesDeaths } from "../support/crashes.ts";

describe("A6 the turns' own process dies within 5 ms after an acknowledged commit; the turn ends all the same", () => {
  survivesDeaths(inject("seeds"), { isolated: true });
});
