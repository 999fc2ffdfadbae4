// What a benchmark prints: a head line, markdown tables, and each goal as a ratio with its verdict. Never fails a run.
import { availableParallelism, cpus } from "node:os";
import { load } from "./load.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);

export function head(title: string, note: string): void {
  const cpu = cpus()[0]?.model.trim() ?? "unknown CPU";
  print(`\n# ${title}\nnode ${process.version}, ${availableParallelism()} × ${cpu}, load ${load()}; ${note}`);
}

export function table(columns: readonly string[], rows: readonly (readonly string[])[]): void {
  print(`\n| ${columns.join(" | ")} |\n|---|${"--:|".repeat(columns.length - 1)}`);
  for (const row of rows) print(`| ${row.join(" | ")} |`);
}

export function digits(value: number, places = 0): string {
  return Number.isFinite(value) ? value.toFixed(places) : "–";
}

export interface Goal {
  readonly number: string;
  readonly what: string;
  readonly value: number;
  readonly must: number;
  /** Whether a smaller value is the better one. Default true. */
  readonly less?: boolean;
  readonly unit?: string;
}

export function goals(list: readonly Goal[]): void {
  print("");
  for (const { number, what, value, must, less = true, unit = "×" } of list) {
    const met = less ? value <= must : value >= must;
    print(`goal ${number} ${met ? "met   " : "MISSED"} ${what}: ${digits(value, 2)} ${unit} (must ${less ? "≤" : "≥"} ${must} ${unit})`);
  }
}
