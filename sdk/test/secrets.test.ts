import { capture, redact, redactText, secretForms } from "@iii/sdk";
import { createLogger } from "@iii/sdk/run";
import fc from "fast-check";
import { expect, test } from "vitest";

const KEY = "sk-ant-api03-abcdefghijklmnop";

test.each([
  ["a vendor key", `failed with ${KEY} today`, "failed with [redacted] today"],
  ["a bearer header", "Authorization: Bearer abc.def-ghi_jkl", "Authorization: Bearer [redacted]"],
  ["an assignment", "api_key=abcdef123 x", "api_key=[redacted] x"],
  ["K13.2 a URL's user and key", "GET https://u:KEYKEY@host/x?y=1", "GET https://[redacted]@host/x?y=1"],
  ["K13.2 a URL's key alone", "ws://KEYKEY@127.0.0.1:1/as", "ws://[redacted]@127.0.0.1:1/as"],
  ["a URL without one", "https://host/a@b?c=d@e", "https://host/a@b?c=d@e"],
  ["the token in a bus address", `ws://127.0.0.1:1/as/${"a1".repeat(32)}/otel`, "ws://127.0.0.1:1/as/[redacted]/otel"],
  ["keys of other vendors", "hf_abcdefghijklmnop, rk-abcdefghijklmnop", "[redacted], [redacted]"],
  ["plain text", "nothing to hide: tokens 12", "nothing to hide: tokens 12"],
])("text with %s", (_title, text, expected) => {
  expect(redactText(text)).toBe(expected);
});

test("secret keys hide their values at any depth; numbers that only sound secret stay", () => {
  const value = { a: [{ api_key: "x", max_tokens: 5 }], headers: { authorization: "x" }, usage: { tokens: 7 }, credential: { any: "x" } };
  expect(redact(value)).toEqual({
    a: [{ api_key: "[redacted]", max_tokens: 5 }],
    headers: { authorization: "[redacted]" },
    usage: { tokens: 7 },
    credential: "[redacted]",
  });
});

test("whatever the payload, a capture is short, has no secret and is no accident", () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withTypedArray: true, withDate: true }), (value) => {
      const { json } = capture({ value, deep: [{ token: KEY, note: `x ${KEY} y` }] }, 512);
      expect(json.length).toBeLessThanOrEqual(512);
      expect(json).not.toContain(KEY);
    }),
  );
});

test("the log has no secret in fields, messages or errors", () => {
  const lines: string[] = [];
  const log = createLogger({ name: "t", level: "info", destination: { write: (line) => void lines.push(line) } });
  log.child({ token: KEY }).error({ err: new Error(`bad ${KEY}`), headers: { cookie: KEY } }, `called with ${KEY}`);
  expect(lines).toHaveLength(1);
  expect(lines[0]).not.toContain(KEY);
  expect(JSON.parse(lines[0] ?? "{}")).toMatchObject({ level: "error", name: "t", msg: "called with [redacted]" });
});

test("K13.1 a known secret is found raw, escaped, url-encoded, in hex, and in base64 at any offset", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme", minLength: 12, maxLength: 40 }),
      fc.string({ maxLength: 20 }),
      fc.string({ maxLength: 20 }),
      (secret, before, after) => {
        const forms = secretForms(secret);
        const around = `${before}${secret}${after}`;
        const has = (text: string) => forms.some((form) => text.includes(form));
        expect(has(around)).toBe(true);
        expect(has(JSON.stringify(secret))).toBe(true);
        expect(has(encodeURIComponent(secret))).toBe(true);
        expect(has(Buffer.from(secret).toString("hex"))).toBe(true);
        expect(has(Buffer.from(around).toString("base64"))).toBe(true);
        expect(has(Buffer.from(around).toString("base64url"))).toBe(true);
      },
    ),
  );
});

test("K2.1 odd keys are data in what is shown, and hide nothing", () => {
  const value: unknown = JSON.parse('{"__proto__":{"token":"abc"},"constructor":1,"prototype":[{"__proto__":2}]}');
  expect(JSON.stringify(redact(value))).toBe('{"__proto__":{"token":"[redacted]"},"constructor":1,"prototype":[{"__proto__":2}]}');
  expect(capture(value).json).toBe('{"__proto__":{"token":"[redacted]"},"constructor":1,"prototype":[{"__proto__":2}]}');
});
