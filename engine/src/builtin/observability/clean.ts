// The choke point of everything observed: secrets out, sizes bounded. Whatever is stored has passed through here.
import { isSecretKey, REDACTED, redact, redactText } from "@iii/sdk";
import type { StoredLog, StoredSpan } from "./contract.ts";

const MAX_TEXT = 8_192;
const MAX_ATTRIBUTES = 128;
const MAX_EVENTS = 64;

const cut = (text: string): string => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
const clean = (text: string): string => cut(redactText(withoutCredentials(text)));

/** A captured payload is JSON in a text; a credential in it has fields of ordinary names, which only its type gives away. */
const HOLDS_CREDENTIAL = /"type"\s*:\s*"(?:api_key|oauth)"/;

function withoutCredentials(text: string): string {
  if (!HOLDS_CREDENTIAL.test(text)) return text;
  try {
    return JSON.stringify(redact(JSON.parse(text)));
  } catch {
    return REDACTED; // cut short: what stands where cannot be told
  }
}

interface Name {
  readonly clean: string;
  readonly secret: boolean;
}

const MAX_NAMES = 1_000;
const names = new Map<string, Name>();

/** Names of spans, attributes and services are few and come again and again: what was found out about one is kept. */
function nameOf(text: string): Name {
  const known = names.get(text);
  if (known !== undefined) return known;
  const name = { clean: clean(text), secret: isSecretKey(text) };
  if (names.size >= MAX_NAMES) names.clear();
  if (text.length <= 256) names.set(text, name);
  return name;
}

function cleanPairs(pairs: readonly (readonly [string, string])[]): [string, string][] {
  return pairs.slice(0, MAX_ATTRIBUTES).map(([key, value]) => {
    const name = nameOf(key);
    return [name.clean, name.secret ? REDACTED : clean(value)];
  });
}

export function cleanSpan(span: StoredSpan): StoredSpan {
  return {
    ...span,
    name: nameOf(span.name).clean,
    service_name: nameOf(span.service_name).clean,
    ...(span.status_description === undefined ? {} : { status_description: clean(span.status_description) }),
    attributes: cleanPairs(span.attributes),
    events: span.events
      .slice(0, MAX_EVENTS)
      .map((event) => ({ ...event, name: nameOf(event.name).clean, attributes: cleanPairs(event.attributes) })),
    links: span.links.slice(0, MAX_EVENTS).map((link) => ({ ...link, attributes: cleanPairs(link.attributes) })),
  };
}

export function cleanLog(log: StoredLog): StoredLog {
  return {
    ...log,
    body: clean(log.body),
    service_name: clean(log.service_name),
    attributes: redact(log.attributes) as Record<string, unknown>,
    resource: redact(log.resource) as Record<string, string>,
  };
}
