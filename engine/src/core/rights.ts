// Who is there: principals, and the rights that the entries of config.yaml have.
import { compileGlobs } from "@iii/sdk";
import type { Principal } from "@iii/sdk/protocol";

/** Nobody who proved anything. */
export const NOBODY: Principal = { kind: "none", name: "" };

/** What an entry provides and calls, as patterns. */
export interface EntryRights {
  readonly provides: readonly string[];
  readonly calls: readonly string[];
  /** False: the agent's mark holds for this entry although it provides protected ids. For tests of other things. */
  readonly control?: boolean;
}

export interface Rights {
  provides(id: string): boolean;
  calls(id: string): boolean;
  readonly control: boolean | undefined;
  readonly patterns: readonly string[];
}

const compiled = new WeakMap<EntryRights, Rights>();

export function rightsOf(entry: EntryRights | undefined): Rights | undefined {
  if (entry === undefined) return undefined;
  const known = compiled.get(entry);
  if (known !== undefined) return known;
  const rights: Rights = {
    provides: compileGlobs(entry.provides),
    calls: compileGlobs(entry.calls),
    control: entry.control,
    patterns: entry.provides,
  };
  compiled.set(entry, rights);
  return rights;
}

export function nameOf({ kind, name }: Principal): string {
  if (kind === "none") return "an unproven client";
  return kind === "operator" ? `operator '${name}'` : `'${name}'`;
}
