import { expect, test } from "vitest";
import { counted } from "../ui/src/model/deadline.ts";

test("K8.3 a row counts down from what the server said was left, whatever the browser's date", () => {
  const rows = [
    { id: "a", expires_at: 0, remaining_ms: 5_000 },
    { id: "b", expires_at: null, remaining_ms: null },
    { id: "c", expires_at: 9e15 },
  ];
  expect(counted(rows, 100).map(({ id, ends_at }) => [id, ends_at])).toEqual([
    ["a", 5_100],
    ["b", undefined],
    ["c", undefined],
  ]);
});

test("K8.3 a row that is over stays over", () => {
  expect(counted([{ remaining_ms: -1 }], 100)[0]?.ends_at).toBe(99);
});
