// W3C baggage: text to entries and back. Entries are merged, never replaced; what does not fit the limits is left out.

export type Baggage = Readonly<Record<string, string>>;

const MAX_BYTES = 8_192;
const MAX_ENTRIES = 64;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function decode(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Reads a `baggage` header value; malformed entries are skipped, properties after `;` are dropped. */
export function parseBaggage(text: string | undefined): Baggage {
  if (text === undefined || text === "") return {};
  const entries: Record<string, string> = {};
  for (const member of text.split(",")) {
    const properties = member.indexOf(";");
    const pair = properties === -1 ? member : member.slice(0, properties);
    const equals = pair.indexOf("=");
    const key = pair.slice(0, Math.max(0, equals)).trim();
    if (TOKEN.test(key)) entries[key] = decode(pair.slice(equals + 1).trim());
  }
  return entries;
}

/** Writes entries as a `baggage` header value; undefined when there are none. */
export function formatBaggage(baggage: Baggage): string | undefined {
  const members: string[] = [];
  let size = 0;
  for (const [key, value] of Object.entries(baggage)) {
    if (!TOKEN.test(key)) continue;
    const member = `${key}=${encodeURIComponent(value)}`;
    size += member.length + 1;
    if (size > MAX_BYTES || members.length >= MAX_ENTRIES) break;
    members.push(member);
  }
  return members.length === 0 ? undefined : members.join(",");
}
