// What a person reads when the stack is up. Text only.

import type { HealthReport } from "@iii/engine/server";
import pc from "picocolors";
import type { ShownLine } from "./manifest.ts";

export interface StackFacts {
  readonly version: string;
  readonly busUrl: string;
  readonly httpUrl: string;
  /** Where the rows are. */
  readonly place: string;
  readonly health: HealthReport;
  /** What the workers that are ready have to say. */
  readonly lines: readonly ShownLine[];
}

const LABEL_WIDTH = 10;

function dataText({ health, place }: StackFacts): string {
  if (health.durability === "memory") return "in memory: NOTHING survives the end of this process";
  return `${place} (durability ${health.durability})`;
}

const down = ({ failed }: HealthReport, name: string) => failed.some((one) => one.name === name);

/** How the workers do: how many are ready, and a line for each that is not. */
export function workerLines(health: HealthReport): string[] {
  const total = health.workers.length + health.waiting.length;
  const late = health.waiting.filter((name) => !down(health, name));
  return [
    `${health.workers.length}/${total} ready`,
    ...health.failed.map(({ name, reason }) => pc.red(`${name} cannot start: ${reason}`)),
    ...(late.length === 0 ? [] : [pc.yellow(`still starting: ${late.join(", ")}`)]),
  ];
}

/** Nothing is on its way any more: every worker is ready or has failed. */
export function isSettled(health: HealthReport): boolean {
  return health.waiting.every((name) => down(health, name));
}

export function banner(facts: StackFacts): string {
  const row = (name: string, text: string) =>
    `  ${pc.dim(name.padEnd(LABEL_WIDTH))}${text.replaceAll("\n", `\n${" ".repeat(LABEL_WIDTH + 2)}`)}`;
  const [first = "", ...rest] = workerLines(facts.health);
  const lines = [
    "",
    `  ${pc.bold("iii harness")} ${facts.version}`,
    "",
    row("bus", facts.busUrl),
    row("health", `${facts.httpUrl}/healthz`),
    row("data", dataText(facts)),
    row("workers", first),
    ...rest.map((text) => row("", text)),
    ...facts.lines.map(({ row: name, text, warn }) => row(name, warn ? pc.yellow(text) : text)),
  ];
  lines.push("", `  ${pc.dim("Ctrl+C stops everything")}`, "");
  return lines.join("\n");
}

/** Said once after a banner that had to be shown before the stack had settled, and again when all are ready. */
export function settledText(health: HealthReport): string {
  return `workers   ${workerLines(health).join("\n          ")}`;
}
