// Takes the secrets that a provider holds out of everything it reads, in every form in which they may be echoed.
import { REDACTED, redactText, secretForms } from "@iii/sdk";

/** A shorter value is a placeholder that local servers want ("ollama"), and an ordinary word in answers. */
const SHORTEST = 8;

export interface Scrubber {
  /** Text without the secrets. */
  text(text: string): string;
  /** A JSON value without the secrets in any string, keys included. Must not be too deep. */
  value<T>(value: T): T;
  /** Text without the secrets and without whatever else looks like one: for messages to people. */
  message(text: string): string;
  /** For text that comes in pieces. */
  stream(): ScrubStream;
}

/** What `push` gives is clean; a tail that may be the beginning of a secret is held back until it is known, or until `end`. */
export interface ScrubStream {
  push(piece: string): string;
  end(): string;
}

const PLAIN: ScrubStream = { push: (piece) => piece, end: () => "" };

class Held implements ScrubStream {
  readonly #clean: (text: string) => string;
  readonly #beginnings: ReadonlySet<string>;
  readonly #longest: number;
  #held = "";

  constructor(clean: (text: string) => string, beginnings: ReadonlySet<string>, longest: number) {
    this.#clean = clean;
    this.#beginnings = beginnings;
    this.#longest = longest;
  }

  push(piece: string): string {
    const text = this.#clean(this.#held + piece);
    let keep = Math.min(this.#longest - 1, text.length);
    while (keep > 0 && !this.#beginnings.has(text.slice(-keep))) keep -= 1;
    this.#held = text.slice(text.length - keep);
    return text.slice(0, text.length - keep);
  }

  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}

function mapped(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((item) => mapped(item, clean));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [clean(key), mapped(item, clean)]));
}

export function scrubber(secrets: readonly string[]): Scrubber {
  const forms = secrets.filter((secret) => secret.length >= SHORTEST).flatMap(secretForms);
  // Once more escaped: arguments travel as JSON inside JSON.
  const escaped = forms.map((form) => JSON.stringify(form).slice(1, -1));
  const sorted = [...new Set([...forms, ...escaped])].sort((a, b) => b.length - a.length);
  const clean = (text: string) => sorted.reduce((left, form) => left.replaceAll(form, REDACTED), text);
  const beginnings = new Set(sorted.flatMap((form) => Array.from(form, (_, at) => form.slice(0, at)).slice(1)));
  const [longest = ""] = sorted;
  return {
    text: clean,
    value: <T>(value: T) => (sorted.length === 0 ? value : (mapped(value, clean) as T)),
    message: (text) => redactText(clean(text)),
    stream: () => (sorted.length === 0 ? PLAIN : new Held(clean, beginnings, longest.length)),
  };
}
