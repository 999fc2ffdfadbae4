// Named places where a test may make the process die or fail. Does nothing unless the environment asks for it.
import { BusError } from "./errors.ts";

interface Plan {
  readonly action: "kill" | "error";
  /** Acts on this hit, counted from 1; errors without a number act on every hit. */
  readonly hit: number | undefined;
  readonly delayMs: number;
  readonly code: string;
}

const ENTRY = /^(?<name>[^=]+)=(?:kill(?:\+(?<delay>\d+))?|error:(?<code>[A-Za-z_]+))(?:@(?<hit>\d+))?$/;

function parseEntry(entry: string): { name: string; plan: Plan } {
  const groups = ENTRY.exec(entry)?.groups;
  if (groups === undefined) throw new BusError("config_invalid", `FAILPOINTS: cannot read '${entry}'`);
  const { name = "", code, delay = "0", hit } = groups;
  const on = hit === undefined ? undefined : Number(hit);
  if (code !== undefined) return { name, plan: { action: "error", hit: on, delayMs: 0, code } };
  return { name, plan: { action: "kill", hit: on ?? 1, delayMs: Number(delay), code: "" } };
}

/** Parses `name=kill@3,other=kill+50,third=error:STORE_FULL@2`. @throws on an entry that it does not understand. */
export function parseFailpoints(text: string): ReadonlyMap<string, Plan> {
  const entries = text.split(",").map((part) => part.trim());
  return new Map(entries.filter((part) => part !== "").map((part) => [parseEntry(part).name, parseEntry(part).plan]));
}

interface Host {
  env?: Record<string, string | undefined>;
  pid?: number;
  kill?: (pid: number, signal: string) => void;
  getBuiltinModule?: (id: string) => { readFileSync(path: string, encoding: string): string; unlinkSync(path: string): void };
}

const proc = (globalThis as { process?: Host }).process;
const spec = proc?.env?.["FAILPOINTS"] ?? "";
const fixed = spec === "" ? undefined : parseFailpoints(spec);
/** A file that holds such a text. Points are armed while it exists, and the one that kills removes it: it fires once, across restarts. */
const file = proc?.env?.["FAILPOINTS_FILE"] ?? "";
const hits = new Map<string, number>();

function plansNow(): ReadonlyMap<string, Plan> | undefined {
  if (file === "") return fixed;
  try {
    return parseFailpoints(proc?.getBuiltinModule?.("node:fs").readFileSync(file, "utf8") ?? "");
  } catch {
    return undefined; // Not armed.
  }
}

function die(): void {
  try {
    if (file !== "") proc?.getBuiltinModule?.("node:fs").unlinkSync(file);
  } catch {
    return; // Another process fired first.
  }
  proc?.kill?.(proc.pid ?? 0, "SIGKILL");
}

/** False: no point will ever act in this process, and none needs to be reached. */
export const failpointsArmed = fixed !== undefined || file !== "";

/** Marks a place where a crash or an error can be asked for by `FAILPOINTS` or `FAILPOINTS_FILE`. @throws BusError with the code asked for. */
export function failpoint(name: string): void {
  if (!failpointsArmed) return;
  const plan = plansNow()?.get(name);
  if (plan === undefined) return;
  const count = (hits.get(name) ?? 0) + 1;
  hits.set(name, count);
  if (plan.hit !== undefined && plan.hit !== count) return;
  if (plan.action === "error") throw new BusError(plan.code, `failpoint ${name}`);
  if (plan.delayMs === 0) die();
  else setTimeout(die, plan.delayMs);
}
