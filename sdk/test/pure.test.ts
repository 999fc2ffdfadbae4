import { formatBaggage, parseBaggage, parseTraceparent, unsampled } from "@iii/sdk";
import fc from "fast-check";
import { expect, test } from "vitest";
import { backoff, type LinkEvent, type LinkState, nextLink, RECONNECT } from "../src/client/link.ts";
import { callAttributes } from "../src/client/trace-ids.ts";
import { parseFailpoints } from "../src/failpoint.ts";

const OPEN: LinkState = { phase: "open" };
const CLOSED: LinkState = { phase: "closed" };
const connecting = (attempt: number): LinkState => ({ phase: "connecting", attempt });
const waiting = (attempt: number): LinkState => ({ phase: "waiting", attempt });

test.each<[LinkState, LinkEvent["type"], LinkState, object | undefined]>([
  [connecting(2), "opened", OPEN, undefined],
  [connecting(2), "lost", waiting(3), { type: "wait", ms: 4_000 }],
  [connecting(2), "due", connecting(2), undefined],
  [OPEN, "lost", waiting(1), { type: "wait", ms: 1_000 }],
  [OPEN, "opened", OPEN, undefined],
  [OPEN, "due", OPEN, undefined],
  [waiting(3), "due", connecting(3), { type: "dial" }],
  [waiting(3), "lost", waiting(3), undefined],
  [waiting(3), "opened", waiting(3), undefined],
  [connecting(0), "close", CLOSED, { type: "hang_up" }],
  [OPEN, "close", CLOSED, { type: "hang_up" }],
  [waiting(1), "close", CLOSED, { type: "hang_up" }],
  [CLOSED, "opened", CLOSED, undefined],
  [CLOSED, "lost", CLOSED, undefined],
  [CLOSED, "due", CLOSED, undefined],
  [CLOSED, "close", CLOSED, undefined],
])("link: %o, %s", (state, type, next, effect) => {
  expect(nextLink(state, { type }, 0.5, RECONNECT)).toEqual(effect === undefined ? [next] : [next, effect]);
});

test("the wait between tries grows to its limit and is spread by at most a third", () => {
  fc.assert(
    fc.property(fc.nat(1_000), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, chance) => {
      const base = Math.min(30_000, 1_000 * 2 ** Math.min(attempt, 30));
      expect(Math.abs(backoff(attempt, chance, RECONNECT) - base)).toBeLessThanOrEqual(base * 0.3 + 1);
    }),
  );
});

test("baggage survives its journey as text", () => {
  const key = fc.stringMatching(/^[a-z.][a-z0-9._-]{0,20}$/);
  fc.assert(
    fc.property(fc.dictionary(key, fc.string({ unit: "grapheme", maxLength: 40 }), { maxKeys: 20, noNullPrototype: true }), (entries) => {
      expect(parseBaggage(formatBaggage(entries))).toEqual(entries);
    }),
  );
});

test.each([
  ["a=1;prop=x,b=%20", { a: "1", b: " " }],
  ["broken,=x,c=%zz", { c: "%zz" }],
  ["", {}],
])("baggage %o is read forgivingly", (text, expected) => {
  expect(parseBaggage(text)).toEqual(expected);
});

test.each([
  ["00-0123456789abcdef0123456789abcdef-0123456789abcdef-01", true],
  ["00-0123456789abcdef0123456789abcdef-0123456789abcdef-00", false],
  ["00-00000000000000000000000000000000-0123456789abcdef-01", undefined],
  ["ff-0123456789abcdef0123456789abcdef-0123456789abcdef-01", undefined],
  ["nonsense", undefined],
  ["01-0123456789abcdef0123456789abcdef-0123456789abcdef-01-what-comes", true],
  ["01-0123456789abcdef0123456789abcdef-0123456789abcdef-01", true],
  ["01-0123456789abcdef0123456789abcdef-0123456789abcdef-01x", undefined],
  ["00-0123456789ABCDEF0123456789abcdef-0123456789abcdef-01", undefined],
])("traceparent %o", (text, sampled) => {
  expect(parseTraceparent(text)?.sampled).toBe(sampled);
  expect(parseTraceparent(unsampled(text))?.sampled).toBe(sampled === undefined ? undefined : false);
});

test.each(["-", "-00", "-extra", "x", " "])("K11.6 a traceparent of version 00 with %j behind it starts a new trace", (more) => {
  expect(parseTraceparent(`00-0123456789abcdef0123456789abcdef-0123456789abcdef-01${more}`)).toBeUndefined();
});

test.each([
  ["the input", { session_id: "a", message_id: "m", body: { session_id: "b" } }, { x: "y" }, "a"],
  ["an HTTP body", { body: { session_id: "b", message_id: "m" } }, {}, "b"],
  ["a wrapped payload", { body: { payload: { session_id: "c", message_id: "m" } } }, {}, "c"],
  ["a payload", { payload: { session_id: "d", message_id: "m" } }, {}, "d"],
  ["the baggage, whatever a call in a turn looks at", { session_id: "other" }, { "iii.session.id": "e" }, "e"],
  ["the baggage", { session_id: "" }, { "iii.session.id": "e" }, "e"],
  ["nowhere", null, {}, undefined],
])("the session of a call comes from %s", (_title, input, baggage, expected) => {
  expect(callAttributes("f::x", input, baggage)["iii.session.id"]).toBe(expected);
});

test.each([
  ["its input", { session_id: "a" }],
  ["an HTTP body", { body: { session_id: "a" } }],
  ["a payload", { payload: { session_id: "a" } }],
])("P9 a call that names a session in %s, outside of a turn, is about it and none of its traces", (_title, input) => {
  const found = callAttributes("f::x", input, {});
  expect(found).toEqual({ "iii.about.session.id": "a", "iii.function.id": "f::x" });
});

test("failpoints are read, and what cannot be read is said", () => {
  const plans = parseFailpoints("a=kill@3, b=kill+50,c=error:STORE_FULL@2,d=error:TIMEOUT");
  expect([...plans].map(([name, { action, hit, delayMs, code }]) => [name, action, hit, delayMs, code])).toEqual([
    ["a", "kill", 3, 0, ""],
    ["b", "kill", 1, 50, ""],
    ["c", "error", 2, 0, "STORE_FULL"],
    ["d", "error", undefined, 0, "TIMEOUT"],
  ]);
  expect(() => parseFailpoints("a=explode")).toThrow("a=explode");
});
