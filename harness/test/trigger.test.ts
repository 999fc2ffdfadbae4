import { testBus } from "@iii/engine/testing";
import { toBusError } from "@iii/sdk";
import { expect, test } from "vitest";
import { exitCode } from "../cli/output.ts";
import { callByName } from "../cli/trigger.ts";

async function refusal(id: string, payload: unknown): Promise<{ code: string; message: string; exit: number }> {
  await using bus = await testBus([]);
  const thrown = await callByName(await bus.connect(), id, payload, 5_000).then(
    () => undefined,
    (error: unknown) => toBusError(error),
  );
  if (thrown === undefined) throw new Error("it was answered");
  return { code: thrown.code, message: thrown.message, exit: exitCode(thrown) };
}

test("M2 all wrong fields are told at once, with the exit code of bad input", async () => {
  expect(await refusal("state::set", {})).toMatchObject({
    message: expect.stringMatching(/'scope' is missing.*'key' is missing/),
    exit: 2,
  });
});

test.each([
  ["state::gett", /did you mean 'state::get'\?$/],
  ["zzzz::zzzzzzzzzz", /now$/],
])("an id that nobody serves is answered with the nearest one, if any: %s", async (id, expected) => {
  expect(await refusal(id, {})).toMatchObject({ code: "function_not_found", message: expect.stringMatching(expected), exit: 4 });
});
