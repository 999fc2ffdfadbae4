import { expect, test } from "vitest";
import { z } from "zod";
import { checkConfig, defineWorker } from "../src/index.ts";

const Schema = z.object({
  root: z.string().default("."),
  limits: z.object({ bytes: z.int().positive().optional() }).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  servers: z.array(z.object({ url: z.string() })).optional(),
  mode: z.union([z.object({ kind: z.literal("a"), x: z.string() }), z.object({ kind: z.literal("b"), y: z.string() })]).optional(),
  free: z.looseObject({ known: z.string().optional() }).optional(),
  any: z.unknown().optional(),
});

function lines(config: unknown): readonly string[] {
  const checked = checkConfig(Schema, config);
  return checked.ok ? [] : checked.lines;
}

test.each<[string, unknown, string[]]>([
  ["an unknown key", { rooot: "x" }, [`'config.rooot' is an unknown key; did you mean "root"?`]],
  [
    "one that resembles nothing",
    { zzzzzz: 1 },
    ["'config.zzzzzz' is an unknown key; known keys: root, limits, headers, servers, mode, free, any"],
  ],
  ["one inside an object", { limits: { byte: 1 } }, [`'config.limits.byte' is an unknown key; did you mean "bytes"?`]],
  [
    "one inside a list",
    { servers: [{ url: "a" }, { url: "b", urll: "c" }] },
    [`'config.servers.1.urll' is an unknown key; did you mean "url"?`],
  ],
  [
    "one inside the form that fits best",
    { mode: { kind: "b", y: "1", other: 2 } },
    ["'config.mode.other' is an unknown key; known keys: kind, y"],
  ],
  [
    "a name of Object's prototype",
    { constructor: 1 },
    ["'config.constructor' is an unknown key; known keys: root, limits, headers, servers, mode, free, any"],
  ],
  [
    "a wrong value and an unknown key at once",
    { root: 5, rooot: "x" },
    ["'config.root' must be a text, not a number", `'config.rooot' is an unknown key; did you mean "root"?`],
  ],
])("U49 %s is a fault", (_title, config, expected) => {
  expect(lines(config)).toEqual(expected);
});

test.each<[string, unknown]>([
  ["nothing", undefined],
  ["keys of a record", { headers: { "x-any": "1" } }],
  ["keys of an object that takes more", { free: { more: 1 } }],
  ["anything where anything may stand", { any: { deep: { er: 1 } } }],
])("U49 %s is no fault", (_title, config) => {
  expect(lines(config)).toEqual([]);
});

test("U49 a strict schema says an unknown key once", () => {
  const checked = checkConfig(z.strictObject({ mount: z.string().default("/") }), { mout: "/" });
  expect(checked).toMatchObject({ ok: false, lines: [`'config.mout' is an unknown key; did you mean "mount"?`] });
});

test("U50 a worker without a config schema takes none, and says so", () => {
  const worker = defineWorker({ name: "notes", register: () => undefined });
  expect(checkConfig(worker.config, undefined)).toEqual({ ok: true, data: {} });
  expect(checkConfig(worker.config, {})).toMatchObject({ ok: true });
  expect(checkConfig(worker.config, { max: 1 })).toMatchObject({
    ok: false,
    lines: ["'config.max' is an unknown key; there are none here"],
  });
});
