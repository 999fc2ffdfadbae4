import { expect, test } from "vitest";
import { busUrl, keyIn, locked } from "../ui/src/model/key.ts";

test.each([
  ["no fragment", "", false, undefined, ""],
  ["a key alone", "#key=abc_-.~9", true, "abc_-.~9", ""],
  ["a key beside something else", "#a=1&key=abc&b", true, "abc", "#a=1&b"],
  ["two keys: the last", "#key=a&key=b", true, "b", ""],
  ["an empty key leaves the address all the same", "#key=", true, undefined, ""],
  ["a key that would leave its path segment is none", "#key=../x", true, undefined, ""],
  ["a key with an escape is none", "#key=a%2fb", true, undefined, ""],
  ["a key that is too long is none", `#key=${"a".repeat(513)}`, true, undefined, ""],
  ["a name that only ends like it", "#monkey=a", false, undefined, "#monkey=a"],
])("the page's key: %s", (_title, fragment, found, key, rest) => {
  expect(keyIn(fragment)).toEqual({ found, key, rest });
});

test("a page with a key dials under its name, one without dials as nobody", () => {
  expect(busUrl({ protocol: "http:", host: "h:1" }, "k")).toBe("ws://h:1/ws/as/k");
  expect(busUrl({ protocol: "https:", host: "h" }, undefined)).toBe("wss://h/ws");
});

test("a page without rights says why and how to get in", () => {
  expect(locked("keyed", "/")).toBeUndefined();
  for (const rights of ["none", "expired", "locked"] as const) {
    expect(locked(rights, "/chat/a")).toMatchObject({ command: "iii open /chat/a" });
  }
  expect(locked("expired", "/")?.why).toContain("no longer valid");
});
