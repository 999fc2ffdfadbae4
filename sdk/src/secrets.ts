// The one place that decides what a secret looks like: the shapes, the keys that name one, and the forms in which a known one
// may be echoed. Everything that is logged or traced passes through here. Works in browsers.
import { messageOf, stackOf } from "./errors.ts";

export const REDACTED = "[redacted]";

/** Keys whose value is a secret whatever it looks like. Numbers stay: `max_tokens` is none. */
const SECRET_KEY =
  /(?:api[_-]?key|secret|token|passw(?:or)?d|passphrase|authorization|cookie|credentials?|private[_-]?key|access[_-]?key|vault[_-]?key|(?:^|[_-])auth)s?$/i;

/** A provider's credential by itself: its fields have ordinary names. */
const CREDENTIAL_TYPES = new Set<unknown>(["api_key", "oauth"]);

/** Values that are secrets wherever they stand. */
const SECRET_TEXT =
  /\b(?:sk|pk|rk|xai|gsk|hf|pplx|nvapi)[-_][A-Za-z0-9*_.-]{12,}|\bkey-[0-9a-f]{32}\b|(?<=\/as\/|#key=)[A-Za-z0-9_-]{32,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
/** Who a URL logs in as: `https://user:key@host`. The schemes of the world are short. */
const USER_INFO = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/?#"'<>\\]{1,4096}@/gi;
const BEARER = /\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi;
const ASSIGNED =
  /((?:api[_-]?key|secret|token|passw(?:or)?d|authorization|access[_-]?key)["']?\s*[:=]\s*["']?)(?!Bearer\b|Basic\b)([^\s"',;&}\]]{4,})/gi;

/** Cheap: most text has nothing that the patterns above could match. */
const SUSPECT =
  /\b(?:sk|pk|rk|xai|gsk|hf|pplx|nvapi)[-_]|\bkey-[0-9a-f]|\/as\/|#key=|:\/\/[^\s/?#"]*@|\bgh[pousr]_|\bAKIA|\bAIza|\bxox|\beyJ|PRIVATE KEY|\b(?:bearer|basic)\s|(?:key|secret|token|passw(?:or)?d|authorization)["']?\s*[:=]/i;

/** Text with everything that looks like a secret replaced. */
export function redactText(text: string): string {
  if (text.length < 8 || !SUSPECT.test(text)) return text;
  return text
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(SECRET_TEXT, REDACTED)
    .replace(BEARER, `$1 ${REDACTED}`)
    .replace(ASSIGNED, `$1${REDACTED}`);
}

/** Whether a value under this key must not be shown. */
export function isSecretKey(key: string): boolean {
  return SECRET_KEY.test(key);
}

/** Which members of an object must not be shown. */
function secretsOf(value: object): (key: string, item: unknown) => boolean {
  const credential = "type" in value && CREDENTIAL_TYPES.has(value.type);
  return (key, item) => hides(item) && (isSecretKey(key) || (credential && key !== "type"));
}

const SHOWN_DEPTH = 12;

/** A copy of a JSON-like value with secrets replaced; cycles and deep nesting are cut. Never throws. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return typeof value === "function" ? undefined : value;
  if (depth >= SHOWN_DEPTH) return "[cut]";
  if (value instanceof Error) return redactError(value, depth);
  if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  return redactEntries(value, depth);
}

function redactError(error: Error, depth: number): unknown {
  return redact({ ...error, name: error.name, message: messageOf(error), stack: stackOf(error) }, depth + 1);
}

function redactEntries(value: object, depth: number): unknown {
  const isSecret = secretsOf(value);
  // `__proto__` is a key like others; an assignment would take it for something else.
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, isSecret(key, item) ? REDACTED : redact(item, depth + 1)]));
}

function hides(item: unknown): boolean {
  return item !== null && item !== undefined && typeof item !== "number" && typeof item !== "boolean";
}

export interface Capture {
  readonly json: string;
  readonly truncated: boolean;
}

/** A payload as it may stand in a trace: redacted JSON of at most `limit` characters. Stops reading once it has enough. Never throws. */
export function capture(value: unknown, limit = 2_048): Capture {
  const budget = { left: limit };
  const json = JSON.stringify(excerpt(value, budget, 0)) ?? "null";
  const truncated = budget.left <= 0 || json.length > limit;
  return { json: json.length > limit ? json.slice(0, limit) : json, truncated };
}

interface Budget {
  left: number;
}

/** Redacts like `redact`, but leaves out what the budget does not cover: a large payload costs no more than its captured part. */
function excerpt(value: unknown, budget: Budget, depth: number): unknown {
  if (typeof value === "string") return excerptText(value, budget);
  budget.left -= 4;
  if (typeof value !== "object" || value === null) return redact(value);
  if (depth >= SHOWN_DEPTH || value instanceof Uint8Array || value instanceof Error) return redact(value, depth);
  if (Array.isArray(value)) return excerptList(value, budget, depth);
  const copy: [string, unknown][] = [];
  const isSecret = secretsOf(value);
  for (const key of Object.keys(value)) {
    if (budget.left <= 0) break;
    budget.left -= key.length + 4;
    const item = (value as Record<string, unknown>)[key];
    copy.push([key, isSecret(key, item) ? REDACTED : excerpt(item, budget, depth + 1)]);
  }
  return Object.fromEntries(copy);
}

/** Redacted before it is cut, with some way to spare: half a secret at the cut would not be known as one. */
function excerptText(text: string, budget: Budget): string {
  const room = Math.max(0, budget.left);
  budget.left -= text.length + 2;
  if (text.length <= room) return redactText(text);
  return `${redactText(text.slice(0, room + 512)).slice(0, room)}…`;
}

function excerptList(list: readonly unknown[], budget: Budget, depth: number): unknown[] {
  const copy: unknown[] = [];
  for (const item of list) {
    if (budget.left <= 0) break;
    copy.push(excerpt(item, budget, depth + 1));
  }
  return copy;
}

/** A shorter value is no secret that could be told from ordinary text. */
const SHORTEST = 8;

const base64 = (bytes: string): string => globalThis.btoa(bytes);

/**
 * The base64 of `bytes` (one character each) wherever it stands inside a longer encoded text: what surrounds it shifts it by 0, 1 or 2
 * bytes, and blurs the characters at its edges, which are left out.
 */
function base64Cores(bytes: string): string[] {
  return [0, 1, 2].map((shift) => {
    const text = base64("\0".repeat(shift) + bytes).replace(/=+$/, "");
    const blurredEnd = (shift + bytes.length) % 3 === 0 ? 0 : 1;
    return text.slice(shift === 0 ? 0 : shift + 1, text.length - blurredEnd);
  });
}

/** The forms in which a known secret may be echoed: raw, JSON-escaped, URL-encoded, base64 (both alphabets, at any offset), hex. Longest first. */
export function secretForms(secret: string): string[] {
  if (secret.length < SHORTEST) return secret.length < 4 ? [] : [secret];
  const utf8 = new TextEncoder().encode(secret.toWellFormed());
  const bytes = String.fromCharCode(...utf8);
  const cores = base64Cores(bytes);
  const hex = [...utf8].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const forms = [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret.toWellFormed()),
    ...cores,
    ...cores.map((core) => core.replaceAll("+", "-").replaceAll("/", "_")),
    hex,
    hex.toUpperCase(),
  ];
  return [...new Set(forms)].filter((form) => form.length >= SHORTEST).sort((a, b) => b.length - a.length);
}
