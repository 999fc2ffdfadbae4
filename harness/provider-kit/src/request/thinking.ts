// How many tokens a model may think, per level.
import type { GenerateRequest, Model } from "@iii/contracts";

type Level = NonNullable<GenerateRequest["thinking_level"]>;

/** Room that an answer keeps, and the smallest budget vendors take. */
const RESERVE = 1024;

function byLevel(level: Exclude<Level, "off">, max: number): number {
  switch (level) {
    case "xhigh":
      return Math.min(31_999, max - 1);
    case "high":
      return Math.min(16_000, Math.floor(max / 2) - 1);
    case "medium":
      return Math.min(8_000, Math.floor(max / 4));
    case "low":
    case "minimal":
      return Math.min(4_000, Math.floor(max / 8));
  }
}

/** The level a model really gets: `off` where it cannot think, `high` where it does not know `xhigh`. */
export function effectiveLevel(level: Level | undefined, model: Model | undefined): Level {
  if (level === undefined || model?.supports_thinking === false) return "off";
  return level === "xhigh" && model?.supports_xhigh !== true ? "high" : level;
}

/** The thinking budget in tokens, or undefined when there is none or too little room for one. */
export function thinkingBudget(level: Level | undefined, model: Model | undefined, maxTokens: number): number | undefined {
  const effective = effectiveLevel(level, model);
  if (effective === "off") return undefined;
  const listed = effective === "xhigh" ? undefined : model?.thinking_budgets?.[effective];
  const budget = Math.min(listed ?? byLevel(effective, model?.max_output_tokens ?? maxTokens), maxTokens - RESERVE);
  return budget < RESERVE ? undefined : budget;
}
