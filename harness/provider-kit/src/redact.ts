// Keeps credentials out of messages that people, models and logs see.
import type { Credential } from "./spec.ts";

/** Shapes that are secrets whoever they belong to: vendors quote (parts of) a rejected key in their error text. */
const SECRET_SHAPES = [/\b(?:sk|pk|rk|xai|gsk|hf|key)[-_][A-Za-z0-9*_.-]{8,}/g, /\bBearer\s+[^\s"',;]+/gi, /\bAIza[A-Za-z0-9_-]{20,}/g];

/** A function that replaces the credential, and anything that looks like one, by `[redacted]`. */
export function redactor(credential: Credential | undefined): (text: string) => string {
  const secret = credential === undefined ? undefined : credential.type === "api_key" ? credential.key : credential.access_token;
  return (text) => {
    const known = secret === undefined || secret.length < 4 ? text : text.replaceAll(secret, "[redacted]");
    return SECRET_SHAPES.reduce((clean, shape) => clean.replace(shape, "[redacted]"), known);
  };
}
