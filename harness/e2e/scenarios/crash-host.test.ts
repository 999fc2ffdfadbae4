// Deaths while the turns run in the host process beside the engine.
import { describe, inject } from "vitest";
import { survivesDeaths } from "../support/crashes.ts";

describe("A6 engine or host die within 5 ms after an acknowledged commit; the turn ends all the same", () => {
  survivesDeaths(inject("seeds"), { bundled: "process" });
});
