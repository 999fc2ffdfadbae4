// Deaths of the one process that everything but foreign code runs in.
import { describe, inject } from "vitest";
import { survivesDeaths } from "../support/crashes.ts";

describe("A6 the process dies within 5 ms after an acknowledged commit; the turn ends all the same", () => {
  survivesDeaths(inject("seeds"));
});
