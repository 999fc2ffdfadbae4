import { expect, test } from "vitest";
import { counted, skewOf } from "../ui/src/model/deadline.ts";

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

test.each<[string, string | null, number, number]>([
  ["a browser three hours behind", "Tue, 01 Dec 2026 03:00:00 GMT", Date.UTC(2026, 11, 1, 0, 0, 0), 3 * 3_600_000],
  ["a browser three hours ahead", "Tue, 01 Dec 2026 03:00:00 GMT", Date.UTC(2026, 11, 1, 6, 0, 0), -3 * 3_600_000],
  ["a second is no difference", "Tue, 01 Dec 2026 03:00:00 GMT", Date.UTC(2026, 11, 1, 3, 0, 1), 0],
  ["a server that does not tell", null, 5, 0],
  ["a date that is none", "soon", 5, 0],
])("K8.3 dates are told as the server would: %s", (_title, date, now, skew) => {
  expect(skewOf(date, now)).toBe(skew);
});
