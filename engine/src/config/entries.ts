// What is wrong with the entries of `workers`, each looked at by itself: one that is broken hides nothing of the others.
import { checkConfig, nearest } from "@iii/sdk";
import type { z } from "zod";
import { type Fault, faultAt, type Path, type Source } from "./place.ts";
import { WorkerEntry } from "./schema.ts";

export interface EntryProblem {
  readonly key: "path" | "package" | "command" | "name";
  readonly message: string;
  readonly hint?: string;
}

/** The readable part of an entry that may be broken elsewhere. */
export type EntryView = Partial<WorkerEntry> & { readonly name: string };

export interface EntryChecks {
  /** Names of the bundled workers; without it names are not checked. */
  readonly knownWorkers?: readonly string[];
  /** What the bundled workers' `config` may hold; one that is not here is not checked. */
  readonly configs?: ReadonlyMap<string, z.ZodType>;
  /** What is wrong with an entry that only the machine can tell, e.g. a `path` that leads nowhere. */
  readonly checkEntry?: (entry: EntryView) => EntryProblem | undefined;
}

const SOURCES = ["path", "package", "command", "external"] as const;

function viewOf(raw: unknown): EntryView | undefined {
  if (typeof raw !== "object" || raw === null) return undefined;
  const fields = Object.entries(WorkerEntry.shape).flatMap(([key, schema]) => {
    const value = (raw as Record<string, unknown>)[key];
    const parsed = value === undefined ? undefined : schema.safeParse(value);
    return parsed?.success === true ? [[key, parsed.data] as const] : [];
  });
  const view: Partial<WorkerEntry> = Object.fromEntries(fields);
  return view.name === undefined ? undefined : { ...view, name: view.name };
}

function unknownName(name: string, known: readonly string[]): EntryProblem | undefined {
  if (known.includes(name)) return undefined;
  const meant = nearest(name, known);
  const hint =
    meant === undefined ? `bundled are: ${known.join(", ")}; or say path, package, command or external` : `did you mean "${meant}"?`;
  return { key: "name", message: `there is no bundled worker '${name}'`, hint };
}

function problemOf(entry: EntryView, sources: number, checks: EntryChecks): EntryProblem | undefined {
  if (sources > 1) return undefined;
  const found = checks.checkEntry?.(entry);
  if (found !== undefined || sources === 1 || checks.knownWorkers === undefined) return found;
  return unknownName(entry.name, checks.knownWorkers);
}

function configFaults(source: Source, at: Path, { name, config }: EntryView, checks: EntryChecks): Fault[] {
  const schema = checks.configs?.get(name);
  const checked = schema === undefined ? undefined : checkConfig(schema, config);
  if (checked === undefined || checked.ok) return [];
  return checked.faults.map(({ path, problem, unknown }) => {
    const message = problem.replace(/^is (an )?/, "");
    const key = unknown ? path.at(-1) : undefined;
    if (key === undefined) return faultAt(source, [...at, "config", ...path], message);
    return faultAt(source, [...at, "config", ...path.slice(0, -1)], message, { key: String(key) });
  });
}

/** @param given the list as the file has it */
export function entryFaults(source: Source, given: unknown, checks: EntryChecks): Fault[] {
  if (!Array.isArray(given)) return [];
  const seen = new Set<string>();
  return given.flatMap((raw: unknown, index) => {
    const at: Path = ["workers", index];
    const entry = viewOf(raw);
    if (entry === undefined) return [];
    const faults: Fault[] = [];
    const twice = seen.has(entry.name);
    if (twice) faults.push(faultAt(source, [...at, "name"], `'${entry.name}' is named twice`, { hint: "one entry per worker" }));
    seen.add(entry.name);
    const sources = SOURCES.filter((key) => (raw as Record<string, unknown>)[key] !== undefined);
    const second = sources[1];
    if (second !== undefined) {
      faults.push(faultAt(source, at, `${sources.join(" and ")} exclude each other`, { key: second, hint: "keep one of them" }));
    }
    const problem = problemOf(entry, sources.length, checks);
    if (problem !== undefined) faults.push(faultAt(source, [...at, problem.key], problem.message, { hint: problem.hint }));
    return sources.length === 0 ? [...faults, ...configFaults(source, at, entry, checks)] : faults;
  });
}
