// From what clients send to what run::start gets, and back to a status.
import { BusError } from "@iii/sdk";
import { describe, expect, test } from "vitest";
import { unwrap } from "../src/envelope.ts";
import { isComplete, toAnswer, toErrorAnswer, toRun } from "../src/trigger.ts";

const defaults = { provider: "p", model: "m" };
const user = (text: string) => ({ role: "user", content: [{ type: "text", text }], timestamp: 5 });
function run(input: unknown, standIns: object = defaults) {
  let made = 0;
  return toRun(input, standIns, 77, () => `id${++made}`);
}

describe("a run", () => {
  test("gets ids, provider and model when the client names none", () => {
    expect(run({ payload: { messages: [user("hi")] } })).toMatchObject({
      session_id: "id1",
      message_id: "id2",
      provider: "p",
      model: "m",
      messages: [user("hi")],
    });
  });
  test("keeps what the client names, wherever it stands", () => {
    expect(run({ session_id: "s", payload: { message_id: "x", provider: "q", model: "n" } })).toMatchObject({
      session_id: "s",
      message_id: "x",
      provider: "q",
      model: "n",
    });
  });
  test("takes plain text and fills in the time", () => {
    expect(run({ payload: { messages: [{ role: "user", content: "hi" }] } }).messages).toEqual([{ ...user("hi"), timestamp: 77 }]);
  });
  test.each([
    ["nothing", undefined, defaults, "payload"],
    ["no payload", {}, defaults, "'payload'"],
    ["two session ids", { session_id: "a", payload: { session_id: "b" } }, defaults, "session_id"],
    ["a session id with a slash", { session_id: "a/b", payload: {} }, defaults, "'session_id'"],
    ["a session id that is not ASCII", { payload: { session_id: "é" } }, defaults, "session_id"],
    ["a message without a role", { payload: { messages: [{ content: "x" }] } }, defaults, "payload.messages.0"],
    ["a provider without its model", { payload: { provider: "q" } }, defaults, "'model'"],
    ["no provider and no default", { payload: {} }, {}, "'provider'"],
  ])("%s is refused by field", (_title, input, standIns, field) => {
    expect(() => run(input, standIns)).toThrow(
      expect.objectContaining({ code: "invalid_payload", message: expect.stringContaining(field) }),
    );
  });
});

test.each([
  ["both", { payload: { provider: "p", model: "m" } }, true],
  ["a provider", { payload: { provider: "p" } }, true],
  ["a model alone", { payload: { model: "m" } }, false],
  ["none", { payload: {} }, false],
  ["no payload", {}, true],
  ["no object", 7, true],
])("the catalogue is asked only where it can help: %s", (_title, input, complete) => expect(isComplete(input)).toBe(complete));

describe("an answer", () => {
  test.each([
    ["a started turn", { session_id: "s", started: true }, 200],
    ["a queued turn", { session_id: "s", started: false, queued: true }, 200],
    ["a busy session", { session_id: "s", started: false, reason: "session_busy" as const }, 409],
  ])("%s: %o is %i", (_title, result, status) => {
    expect(toAnswer(result)).toEqual({ status_code: status, headers: { "content-type": "application/json" }, body: result });
  });
  test.each([
    ["invalid_payload", 400],
    ["provider_unknown", 400],
    ["FORBIDDEN", 403],
    ["session_busy", 409],
    ["function_not_found", 503],
    ["TIMEOUT", 504],
    ["invocation_failed", 500],
    ["toString", 500],
  ])("error %s is %i", (code, status) => {
    expect(toErrorAnswer(new BusError(code, "why"))).toMatchObject({ status_code: status, body: { error: { code, message: "why" } } });
  });
});

describe("an envelope", () => {
  test.each([
    ["bare", { payload: {} }, { http: false, input: { payload: {} } }],
    ["HTTP", { body: { payload: {} }, headers: {} }, { http: true, input: { payload: {} } }],
    ["HTTP with a text body", { body: '{"payload":{}}' }, { http: true, input: { payload: {} } }],
    ["HTTP with no JSON", { body: "{" }, { http: true, input: undefined }],
    ["HTTP with an empty body", { body: null }, { http: true, input: null }],
    ["bare, with a field called body", { payload: {}, body: 1 }, { http: false, input: { payload: {}, body: 1 } }],
    ["no object", 7, { http: false, input: 7 }],
  ])("%s", (_title, payload, expected) => expect(unwrap(payload, "payload")).toEqual(expected));
});
