// Whether processes still run, as the machine sees it.
import { readFileSync } from "node:fs";
import { membersOf } from "../src/descendants.ts";

export function isGroupRunning(pgid: number): boolean {
  return membersOf({ pgid, marks: new Set(), since: 0, seen: new Map() }).length > 0;
}

/** False also of a zombie that nobody has collected yet: its command line is empty. */
export function isRunning(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8") !== "";
  } catch {
    return false;
  }
}
