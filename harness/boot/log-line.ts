// One line of a worker's output as a person reads it: whose it is, how grave, what. Text only.
import { plain } from "@iii/contracts/visible";
import pc from "picocolors";

const NAME_WIDTH = 18;
const HIDDEN = new Set(["level", "time", "pid", "name", "worker", "msg", "hostname", "v"]);
const PAINT: Readonly<Record<string, (text: string) => string>> = { error: pc.red, fatal: pc.red, warn: pc.yellow };

interface LogRecord {
  readonly [key: string]: unknown;
  readonly level: string;
  readonly msg: string;
}

function parse(text: string): LogRecord | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const isRecord = typeof value === "object" && value !== null && "msg" in value && "level" in value;
    return isRecord && typeof value.msg === "string" && typeof value.level === "string" ? (value as LogRecord) : undefined;
  } catch {
    return undefined;
  }
}

function factsOf(record: LogRecord): string {
  const facts = Object.entries(record).filter(([key]) => !HIDDEN.has(key));
  return facts.map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ");
}

/** Further lines of one record stand below its first one. */
const indented = (text: string) => text.replaceAll("\n", `\n${" ".repeat(NAME_WIDTH + 1)}`);

/** A record of our logger in words; any other line as it is. */
export function logLine(process: string, text: string): string {
  const record = parse(text);
  if (record === undefined) return `${pc.dim(process.padEnd(NAME_WIDTH))} ${plain(text)}`;
  const name = typeof record["worker"] === "string" ? record["worker"] : process;
  const paint = PAINT[record.level] ?? String;
  const facts = plain(factsOf(record));
  return `${pc.dim(name.padEnd(NAME_WIDTH))} ${paint(indented(plain(record.msg)))}${facts === "" ? "" : ` ${pc.dim(facts)}`}`;
}
