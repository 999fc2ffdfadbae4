import fc from "fast-check";
import { expect, test } from "vitest";
import { chatPath, routeOf, sessionOf } from "../ui/src/model/route.ts";

test("every session id that may exist comes back from its address, whatever a router decodes on the way", () => {
  const id = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 1,
    maxLength: 40,
  });
  fc.assert(
    fc.property(id, (session_id) => {
      const path = chatPath(session_id);
      expect(path).toMatch(/^\/chat\/[A-Za-z0-9._~-]+$/);
      expect(sessionOf(decodeURI(path).slice("/chat/".length))).toBe(session_id);
    }),
  );
});

test("an ordinary id stands as it is", () => {
  expect(chatPath("s-1.a_B")).toBe("/chat/s-1.a_B");
});

test.each([
  ["/", { view: "home" }],
  ["/new", { view: "fresh" }],
  ["/chat/a", { view: "chat", part: "a", tab: "chat", trace: undefined }],
  ["/chat/a/", { view: "chat", part: "a", tab: "chat", trace: undefined }],
  ["/chat/a/trace", { view: "chat", part: "a", tab: "trace", trace: undefined }],
  ["/chat/a/trace/t1", { view: "chat", part: "a", tab: "trace", trace: "t1" }],
  ["/traces", { view: "nowhere" }],
  ["/new/x", { view: "nowhere" }],
  ["/chat", { view: "nowhere" }],
  ["/chat//trace", { view: "nowhere" }],
  ["/chat/a/tracee", { view: "nowhere" }],
  ["/chat/a/trace/t1/more", { view: "nowhere" }],
])("U33 %s is shown as what it is", (path, route) => {
  expect(routeOf(path)).toEqual(route);
});
