// The payload of `iii trigger`: --data as JSON, and key=value words on top of it. Pure.
import { usage } from "./output.ts";

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw usage(`--data is not JSON: ${shortened(text)}`);
  }
}

function wordValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function shortened(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}

const LONGEST_MS = 2 ** 31 - 1;

/** How long to wait, in ms. @throws BusError `usage` */
export function readTimeout(text: string): number {
  const ms = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (ms >= 1 && ms <= LONGEST_MS) return ms;
  throw usage(`--timeout '${shortened(text)}' is not a number of milliseconds from 1 to ${LONGEST_MS}`);
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
    if (/^\s*[[{"]/.test(word)) throw usage(`'${shortened(word)}' is not key=value; JSON goes after --data`);
    if (mark < 1) throw usage(`'${shortened(word)}' is not key=value`);
    return [word.slice(0, mark), wordValue(word.slice(mark + 1))] as const;
  });
  return { ...(base as object | undefined), ...Object.fromEntries(pairs) };
}
