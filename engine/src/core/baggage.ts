// W3C baggage, as far as the engine must touch it: set one entry and leave the others as they are.

/** `baggage` with `key` set to `value`; an entry of the same key is replaced. */
export function withBaggage(baggage: string | undefined, key: string, value: string): string {
  const entry = `${key}=${encodeURIComponent(value)}`;
  if (baggage === undefined || baggage.trim() === "") return entry;
  const others = baggage.split(",").filter((part) => part.split("=", 1)[0]?.trim() !== key);
  return [...others, entry].join(",");
}
