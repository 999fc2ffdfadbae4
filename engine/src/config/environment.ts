// Settings that the environment has the last word on, whatever the file says or leaves out.
import type { z } from "zod";
import type { Env } from "./interpolate.ts";
import { type Fault, type Path, pathText } from "./place.ts";
import { EngineConfig } from "./schema.ts";

interface Setting {
  readonly variable: string;
  readonly path: Path;
  readonly schema: z.ZodType;
  readonly read: (text: string) => unknown;
}

const asPort = (text: string) => (/^\d{1,5}$/.test(text) ? Number(text) : Number.NaN);
const Http = EngineConfig.shape.http.unwrap();

const SETTINGS: readonly Setting[] = [
  { variable: "III_PORT", path: ["engine", "port"], schema: EngineConfig.shape.port, read: asPort },
  { variable: "III_HTTP_PORT", path: ["engine", "http", "port"], schema: Http.shape.port, read: asPort },
  { variable: "III_DATA_DIR", path: ["engine", "data"], schema: EngineConfig.shape.data, read: String },
];

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** `data` with `value` at `path`. Where the file has something else than an object on the way, that is left for the schema to refuse. */
function withValue(data: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value;
  if (data !== undefined && !isObject(data)) return data;
  return { ...data, [key]: withValue(data?.[key], rest, value) };
}

/** The document's data with what the environment sets; an empty variable sets nothing. A value that cannot be used is a fault. */
export function overridden(data: unknown, env: Env): { data: unknown; faults: Fault[] } {
  const faults: Fault[] = [];
  let result = data;
  for (const { variable, path, schema, read } of SETTINGS) {
    const text = env[variable];
    if (text === undefined || text === "") continue;
    const value = read(text);
    const usable = schema.safeParse(value).success;
    if (!usable) {
      const message = `'${text}' is not a port`;
      faults.push({
        file: variable,
        line: 0,
        col: 0,
        path: pathText(path),
        message,
        hint: "set a whole number from 0 to 65535, or unset it",
      });
    }
    // What the file says there counts no more, also when the variable is wrong.
    result = withValue(result, path, usable ? value : undefined);
  }
  return { data: result, faults };
}
