// What a person reads when the stack is up. Text only.

import type { HealthReport } from "@iii/engine/server";
import pc from "picocolors";

export interface BannerFacts {
  readonly version: string;
  readonly busUrl: string;
  readonly httpUrl: string;
  readonly dataFile: string;
  readonly health: HealthReport;
  /** Whether the page is among the workers that run. */
  readonly console: boolean;
  /** What runs that name no model use. */
  readonly model: string | undefined;
  readonly allowAll: boolean;
}

const PROMISES: Readonly<Record<string, string>> = {
  full: "full: what was acknowledged survives a crash of any process and a loss of power",
  relaxed: "relaxed: what was acknowledged survives a crash of any process, not a loss of power",
  memory: "memory: NOTHING survives the end of this process",
};

function modelText(model: string): string {
  return model === "demo" ? "demo: made-up replies, no key needed; try 'say hello'" : model;
}

export function banner(facts: BannerFacts): string {
  const { health } = facts;
  const total = health.workers.length + health.waiting.length;
  const row = (name: string, text: string) => `  ${pc.dim(name.padEnd(9))}${text}`;
  const lines = [
    "",
    `  ${pc.bold("iii harness")} ${facts.version}`,
    "",
    row("console", facts.console ? pc.cyan(facts.httpUrl) : `not running; status page at ${facts.httpUrl}`),
    row("bus", facts.busUrl),
    row("workers", `${health.workers.length}/${total} ready`),
    row("storage", `durability ${PROMISES[health.durability] ?? health.durability}`),
    row("", `file ${facts.dataFile}`),
  ];
  for (const { name, reason } of health.failed) lines.push(row("", pc.red(`${name} cannot start: ${reason}`)));
  const late = health.waiting.filter((name) => !health.failed.some((failed) => failed.name === name));
  if (late.length > 0) lines.push(row("", pc.yellow(`still starting: ${late.join(", ")}`)));
  if (facts.model !== undefined) lines.push(row("model", modelText(facts.model)));
  if (facts.allowAll) lines.push(row("policy", pc.yellow("allow_all: every tool call runs without asking")));
  lines.push("", `  ${pc.dim("Ctrl+C stops everything")}`, "");
  return lines.join("\n");
}
