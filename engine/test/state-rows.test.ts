// Typed rows of a scope: what cannot be read is named and never taken for good or for nothing.
import { expect, test } from "vitest";
import { z } from "zod";
import { stateRows } from "../src/contract.ts";
import { testBus } from "../src/testing/index.ts";

const Note = z.object({ text: z.string() });

test("K2.7 a row that is not what it should be is named in a list, and the others are there", async () => {
  await using bus = await testBus();
  const iii = await bus.connect("notes");
  const rows = stateRows(iii, "notes", Note);
  await bus.call("state::set", { scope: "notes", key: "a/1", value: { text: "one" } });
  await bus.call("state::set", { scope: "notes", key: "a/2", value: { text: 2 } });
  await bus.call("state::set", { scope: "notes", key: "b/1", value: { text: "three" } });
  const all = await rows.list();
  expect(all.rows.map(({ key, value }) => [key, value.text])).toEqual([
    ["a/1", "one"],
    ["b/1", "three"],
  ]);
  expect(all.unreadable).toMatchObject([{ key: "a/2", reason: expect.stringContaining("text") }]);
  expect((await rows.list("b/")).rows.map(({ key }) => key)).toEqual(["b/1"]);
  expect(await rows.see("a/2")).toMatchObject({ value: undefined, fault: { raw: { text: 2 } } });
  await expect(rows.get("a/2")).rejects.toMatchObject({ code: "store_corrupt", message: expect.stringContaining("notes a/2") });
});

test("a write names the revision it was made on, and the later of two loses", async () => {
  await using bus = await testBus();
  const iii = await bus.connect("notes");
  const rows = stateRows(iii, "notes", Note);
  expect(await rows.get("k")).toEqual({ value: undefined, rev: 0 });
  expect(await rows.replace("k", { text: "one" }, 0)).toBe(true);
  expect(await rows.replace("k", { text: "two" }, 0)).toBe(false);
  const { value, rev } = await rows.get("k");
  expect(value).toEqual({ text: "one" });
  expect(await rows.replace("k", undefined, rev)).toBe(true);
  expect((await rows.get("k")).value).toBeUndefined();
});
