// The payload of `iii trigger`: --data as JSON, and key=value words on top of it. Pure.
import { usage } from "./output.ts";

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw usage(`--data is not JSON: ${text.slice(0, 80)}`);
  }
}

function wordValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * `k=v` overrides the keys of `--data`; a value that is JSON (`5`, `true`, `{…}`) is taken as that, everything else as text.
 * @throws BusError `usage`
 */
export function readPayload(words: readonly string[], data: string | undefined): unknown {
  const base = data === undefined ? undefined : parse(data);
  if (words.length === 0) return base ?? {};
  if (base !== undefined && (typeof base !== "object" || base === null || Array.isArray(base))) {
    throw usage("key=value words need --data to be an object");
  }
  const pairs = words.map((word) => {
    const mark = word.indexOf("=");
    if (mark < 1) throw usage(`'${word}' is not key=value`);
    return [word.slice(0, mark), wordValue(word.slice(mark + 1))] as const;
  });
  return { ...(base as object | undefined), ...Object.fromEntries(pairs) };
}
