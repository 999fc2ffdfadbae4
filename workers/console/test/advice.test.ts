import { expect, test } from "vitest";
import { failure } from "../ui/src/model/advice.ts";

test("U46 a missing key is told with the provider's name and the next step", () => {
  const told = failure({
    provider: "anthropic",
    error_kind: "auth_expired",
    error_message: "credential_missing: no credential for anthropic; set ANTHROPIC_API_KEY or call auth::set_token",
  });
  expect(told.code).toBe("no key");
  expect(told.text).toBe("No key for anthropic: set ANTHROPIC_API_KEY or call auth::set_token.");
  expect(told.next).toContain("choose another model");
});

test.each([
  ["rate_limited", "429: slow down", "Wait a moment"],
  ["context_overflow", "too long", "new session"],
  ["permanent", "bad request", ""],
])("a failed answer of kind %s keeps its words and gets the step that fits", (error_kind, error_message, next) => {
  const told = failure({ provider: "p", error_kind, error_message });
  expect([told.code, told.text]).toEqual([error_kind, error_message]);
  expect(told.next).toContain(next);
});

test("an answer that failed without a word is said to have failed", () => {
  expect(failure({ provider: "p" })).toMatchObject({ code: "error", text: "The model's answer ended with an error." });
});
