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

/** Parses `name=kill@3,other=kill+50,third=error:store_full@2`. @throws on an entry that it does not understand. */
export function parseFailpoints(text: string): ReadonlyMap<string, Plan> {
  const entries = text.split(",").map((part) => part.trim());
  return new Map(entries.filter((part) => part !== "").map((part) => [parseEntry(part).name, parseEntry(part).plan]));
}

const proc = (
  globalThis as { process?: { env?: Record<string, string | undefined>; pid?: number; kill?: (pid: number, signal: string) => void } }
).process;
const spec = proc?.env?.["FAILPOINTS"] ?? "";
const plans = spec === "" ? undefined : parseFailpoints(spec);
const hits = new Map<string, number>();

/** Marks a place where a crash or an error can be asked for by `FAILPOINTS`. @throws BusError with the code asked for. */
export function failpoint(name: string): void {
  const plan = plans?.get(name);
  if (plan === undefined) return;
  const count = (hits.get(name) ?? 0) + 1;
  hits.set(name, count);
  if (plan.hit !== undefined && plan.hit !== count) return;
  if (plan.action === "error") throw new BusError(plan.code, `failpoint ${name}`);
  const die = (): void => proc?.kill?.(proc.pid ?? 0, "SIGKILL");
  if (plan.delayMs === 0) die();
  else setTimeout(die, plan.delayMs);
}
