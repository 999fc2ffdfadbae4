import { decodeFrame, encodeFrame } from "@iii/sdk/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (raw: Uint8Array | undefined) => (raw === undefined ? undefined : new TextDecoder().decode(raw));

test.each([
  ["data last", '{"type":"invokefunction","function_id":"a","data":{"x":1}}', { type: "invokefunction", function_id: "a" }, '{"x":1}'],
  ["data first", '{"data":[1, 2 ,"}"],"type":"invokefunction"}', { type: "invokefunction" }, '[1, 2 ,"}"]'],
  ["result of a result frame", '{"type":"invocationresult","result":"a\\"b"}', { type: "invocationresult" }, '"a\\"b"'],
  ["data is no payload of a result frame", '{"type":"invocationresult","data":1,"result":2}', { type: "invocationresult" }, "2"],
  ["an escaped key is the same key", '{"d\\u0061ta":null,"type":"x"}', { type: "x" }, "null"],
  ["no payload", ' { "type" : "ping" } ', { type: "ping" }, undefined],
  ["empty", "{}", {}, undefined],
])("splits head and payload: %s", (_title, frame, head, payload) => {
  const decoded = decodeFrame(bytes(frame));
  expect(decoded.head).toEqual(head);
  expect(text(decoded.payload)).toBe(payload);
});

test.each([
  ["a key twice", '{"type":"a","type":"b"}'],
  ["a key twice, once escaped", '{"function_id":"a","function\\u005fid":"b"}'],
  ["data twice", '{"data":1,"data":2}'],
  ["an array", "[1]"],
  ["a string", '"x"'],
  ["nothing", ""],
  ["no end", '{"type":"a"'],
  ["text after the object", '{"type":"a"} x'],
  ["brackets crossed in the payload", '{"data":[{]}}'],
  ["a bare word", '{"type":ping}'],
  ["a bare word as payload", '{"data":nope}'],
  ["a missing comma", '{"a":1 "b":2}'],
  ["a trailing comma", '{"a":1,}'],
  ["a bad value deep in the head", '{"config":{"a":[1,]}}'],
  ["an unfinished string", '{"data":"abc}'],
])("refuses %s", (_title, frame) => {
  expect(() => decodeFrame(bytes(frame))).toThrowError(expect.objectContaining({ code: "invalid_frame" }));
});

test("any object decodes to what JSON.parse reads, payload included", () => {
  const object = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("data", "result", "type")), fc.jsonValue());
  fc.assert(
    fc.property(object, fc.constantFrom(undefined, 1, 3), (value, indent) => {
      const raw = JSON.stringify(value, null, indent);
      const decoded = decodeFrame(bytes(raw));
      const { data, result, ...rest } = JSON.parse(raw) as Record<string, unknown>;
      expect(decoded.head).toEqual(rest);
      const expected = rest["type"] === "invocationresult" ? result : data;
      const payload = text(decoded.payload);
      expect(payload === undefined ? undefined : JSON.parse(payload)).toEqual(expected);
    }),
    { numRuns: 400 },
  );
});

test("what is encoded decodes to the same head and the same payload bytes", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.stringMatching(/^[a-c]{1,3}$/), fc.jsonValue()), fc.json(), (head, payload) => {
      for (const form of [payload, bytes(payload)]) {
        const decoded = decodeFrame(encodeFrame(head, "data", form));
        expect(decoded.head).toEqual(JSON.parse(JSON.stringify(head)));
        expect(text(decoded.payload)).toBe(payload);
      }
    }),
  );
});

test("any cut of a frame is refused, never misread", () => {
  const frame = bytes('{"type":"invokefunction","function_id":"a::b","data":{"k":"v\\"}","n":[1,2,{"z":"é"}]}}');
  for (let cut = 0; cut < frame.length; cut += 1) {
    expect(() => decodeFrame(frame.subarray(0, cut))).toThrowError(expect.objectContaining({ code: "invalid_frame" }));
  }
});

test("a spliced member is read by every parser in place of a forged one", () => {
  const splice = { key: "who", value: "real" };
  for (const payload of ['{"who":"forged"}', "{}", "{ }", '{"a":{"who":1}}']) {
    const decoded = decodeFrame(encodeFrame({ type: "x" }, "data", bytes(payload), splice));
    expect(JSON.parse(text(decoded.payload) ?? "")).toEqual({ ...JSON.parse(payload), who: "real" });
  }
  for (const payload of ["[1]", '"{}"', "null", "3"]) {
    expect(text(decodeFrame(encodeFrame({ type: "x" }, "data", payload, splice)).payload)).toBe(payload);
  }
});
