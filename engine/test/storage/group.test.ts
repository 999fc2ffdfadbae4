import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Group, HISTORY, HISTORY_CHARS } from "../../src/builtin/storage/stream/group.ts";

const filled = (count: number): Group => {
  const group = new Group("e1");
  for (let n = 1; n <= count; n += 1) group.put(`i${n}`, n, false, 1);
  return group;
};

describe("a stream group", () => {
  test("a cursor gives what came after it", () => {
    const { items, gap, seq } = filled(5).read(3, "e1");
    expect({ gap, seq, got: items.map(({ item_id }) => item_id) }).toEqual({ gap: false, seq: 5, got: ["i4", "i5"] });
  });

  test("without a cursor it is the whole group, and no gap", () => {
    expect(filled(3).read(undefined, undefined)).toMatchObject({ gap: false, seq: 3, items: [{ seq: 1 }, { seq: 2 }, { seq: 3 }] });
  });

  test.each([
    ["of another epoch", 2, "e0"],
    ["from the future", 99, "e1"],
  ])("a cursor %s is a gap with a snapshot", (_title, since, epoch) => {
    const reading = filled(3).read(since, epoch);
    expect(reading.gap).toBe(true);
    expect(reading.items).toHaveLength(3);
  });

  test("a cursor older than the history is a gap; a cursor inside it is none", () => {
    const group = filled(HISTORY * 2);
    expect(group.read(1, "e1")).toMatchObject({ gap: true });
    expect(group.read(HISTORY * 2 - 10, "e1").items).toHaveLength(10);
    expect(group.read(HISTORY + 1, "e1")).toMatchObject({ gap: false });
  });

  test("a history of large changes is short, and a cursor that fell out of it is a gap", () => {
    const group = new Group("e1");
    for (let n = 1; n <= 100; n += 1) group.put("big", n, false, HISTORY_CHARS / 10);
    expect(group.read(80, "e1")).toMatchObject({ gap: true, items: [{ data: 100 }] });
    expect(group.read(95, "e1")).toMatchObject({ gap: false });
    group.put("huge", 101, false, HISTORY_CHARS * 2);
    expect(group.read(100, "e1")).toMatchObject({ gap: false, items: [{ data: 101 }] });
    expect(group.read(99, "e1")).toMatchObject({ gap: true });
  });

  test("dropped deltas are gone from items and history, and are no gap", () => {
    const group = filled(1);
    group.put("m/d/1", "a", true, 3);
    group.put("m/d/2", "b", true, 3);
    group.put("m/end", "ab", false, 4);
    group.drop("m/d/");
    expect([...group.items.keys()]).toEqual(["i1", "m/end"]);
    expect(group.read(1, "e1")).toMatchObject({ gap: false, items: [{ item_id: "m/end" }] });
  });

  test("a stored item is not dropped", () => {
    const group = new Group("e1");
    group.put("m/d/1", "a", false, 3);
    group.drop("m/d/");
    expect(group.items.size).toBe(1);
  });

  test("whoever reads by cursor at any moments sees what a snapshot at the end shows", () => {
    const change = fc.record({ id: fc.constantFrom("a", "b", "c"), gone: fc.boolean(), read: fc.boolean() });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const group = new Group("e");
        const seen = new Map<string, unknown>();
        let cursor = 0;
        const follow = (): void => {
          const { items, seq, gap } = group.read(cursor, "e");
          expect(gap).toBe(false);
          for (const { item_id, event, data } of items) {
            if (event === "delete") seen.delete(item_id ?? "");
            else seen.set(item_id ?? "", data);
          }
          cursor = seq;
        };
        for (const [n, { id, gone, read }] of changes.entries()) {
          if (gone) group.remove(id);
          else group.put(id, n, false, 1);
          if (read) follow();
        }
        follow();
        expect(seen).toEqual(new Map([...group.items].map(([id, { data }]) => [id, data])));
      }),
    );
  });
});
