// Values made readable. Pure.

/** A value as indented JSON; a string stands as itself. */
export function pretty(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

/** `{a: 1, b: "x"}` as `a=1 b=x`, cut to `max` characters: a glance, never the basis of a decision. */
export function glance(args: unknown, max = 90): string {
  if (typeof args !== "object" || args === null) return args === undefined || args === null ? "" : cut(String(args), max);
  const parts = Object.entries(args).map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return cut(parts.join(" "), max);
}

/** The first line of a text, cut to `max` characters. */
export function headline(text: string, max = 60): string {
  return cut(text.trim().split("\n", 1)[0] ?? "", max);
}

function cut(text: string, max: number): string {
  const chars = [...text.replace(/\s+/g, " ")];
  return chars.length <= max ? chars.join("") : `${chars.slice(0, max - 1).join("")}…`;
}

/** Milliseconds in the unit that fits. */
export function duration(ms: number): string {
  if (ms < 0.9995) return `${Math.max(0, Math.round(ms * 1000))} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long ago, in one word. */
export function ago(ms: number): string {
  if (ms < 45_000) return "now";
  if (ms < 3_600_000) return `${Math.max(1, Math.round(ms / 60_000))}m`;
  if (ms < 86_400_000) return `${Math.round(ms / 3_600_000)}h`;
  return `${Math.round(ms / 86_400_000)}d`;
}

/** US dollars, with as many digits as make it more than zero. */
export function dollars(usd: number): string {
  if (usd === 0) return "$0.00";
  return usd < 0.01 ? `$${usd.toPrecision(2)}` : `$${usd.toFixed(2)}`;
}
