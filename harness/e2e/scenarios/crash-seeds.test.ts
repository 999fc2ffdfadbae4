// Deaths while the turns run in the shared host.
import { describe, inject } from "vitest";
import { survivesDeaths } from "../support/crashes.ts";

describe("A6 a process dies within 5 ms after an acknowledged commit; the turn ends all the same", () => {
  survivesDeaths(inject("seeds"), { isolated: false });
});
