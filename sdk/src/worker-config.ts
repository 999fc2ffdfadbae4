// Checks a worker's `config` block against its schema: everything wrong at once, keys that no schema knows among it, at any depth.
import { z } from "zod";
import { problemsOf } from "./issues.ts";
import { nearest } from "./nearest.ts";

export interface ConfigFault {
  /** From the block itself: `["headers", 0]`. */
  readonly path: readonly (string | number)[];
  /** To stand behind the field's name: `must be a text, not a number`. */
  readonly problem: string;
  /** The schema knows no such key. */
  readonly unknown: boolean;
}

export type ConfigCheck<T> =
  | { readonly ok: true; readonly data: T }
  | { readonly ok: false; readonly faults: readonly ConfigFault[] /** The same as lines for people. */; readonly lines: readonly string[] };

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema | readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

type Path = readonly (string | number)[];

function unknownKey(path: Path, known: readonly string[]): ConfigFault {
  const meant = nearest(String(path.at(-1)), known);
  const others = known.length === 0 ? "there are none here" : `known keys: ${known.join(", ")}`;
  return { path, problem: `is an unknown key; ${meant === undefined ? others : `did you mean "${meant}"?`}`, unknown: true };
}

function unknownInObject(schema: JsonSchema, value: object, path: Path): ConfigFault[] {
  const { properties = {}, additionalProperties: rest } = schema;
  if (schema.properties === undefined && rest === undefined) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = [...path, key];
    if (Object.hasOwn(properties, key)) return unknownKeys(properties[key] ?? {}, inner, at);
    if (typeof rest === "object") return unknownKeys(rest, inner, at);
    return rest === true ? [] : [unknownKey(at, Object.keys(properties))];
  });
}

/** Keys of `value` that the schema does not name, although zod would only leave them out. Of several forms, the one that fits best counts. */
function unknownKeys(schema: JsonSchema, value: unknown, path: Path): ConfigFault[] {
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms !== undefined) {
    const found = forms.map((form) => unknownKeys(form, value, path));
    return found.reduce((best, other) => (other.length < best.length ? other : best), found[0] ?? []);
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined || Array.isArray(items)
      ? []
      : value.flatMap((one, at) => unknownKeys(items as JsonSchema, one, [...path, at]));
  }
  return typeof value === "object" && value !== null ? unknownInObject(schema, value, path) : [];
}

/** Parses a worker's configuration; nothing counts as `{}`. A key that the schema does not name is a fault and never left out in silence. */
export function checkConfig<C extends z.ZodType>(schema: C, config: unknown): ConfigCheck<z.output<C>> {
  const value = config ?? {};
  const known = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
  const parsed = schema.safeParse(value);
  const wrong = parsed.success ? [] : problemsOf(parsed.error).filter(({ issue }) => issue.code !== "unrecognized_keys");
  const faults: ConfigFault[] = [
    ...wrong.map(({ issue, problem }) => {
      const path = issue.path.map((part) => (typeof part === "number" ? part : String(part)));
      return { path, problem, unknown: false };
    }),
    ...unknownKeys(known, value, []),
  ];
  if (parsed.success && faults.length === 0) return { ok: true, data: parsed.data };
  return { ok: false, faults, lines: faults.map(({ path, problem }) => `'${["config", ...path].join(".")}' ${problem}`) };
}
