// Which environment variable holds which provider's key.
import type { Credential } from "./contract.ts";

export const VARIABLES: Readonly<Record<string, string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY",
  "openai-codex": "OPENAI_API_KEY",
  "azure-openai": "AZURE_OPENAI_API_KEY",
  google: "GOOGLE_API_KEY",
  "google-vertex": "GOOGLE_APPLICATION_CREDENTIALS",
  "amazon-bedrock": "AWS_ACCESS_KEY_ID",
  mistral: "MISTRAL_API_KEY",
  groq: "GROQ_API_KEY",
  cerebras: "CEREBRAS_API_KEY",
  xai: "XAI_API_KEY",
  deepseek: "DEEPSEEK_API_KEY",
  openrouter: "OPENROUTER_API_KEY",
  "vercel-ai-gateway": "VERCEL_AI_GATEWAY_API_KEY",
  zai: "ZAI_API_KEY",
  minimax: "MINIMAX_API_KEY",
  huggingface: "HF_TOKEN",
  fireworks: "FIREWORKS_API_KEY",
  kimi: "MOONSHOT_API_KEY",
  "kimi-coding": "MOONSHOT_API_KEY",
  lmstudio: "LMSTUDIO_API_KEY",
  "opencode-zen": "OPENCODE_ZEN_API_KEY",
  "opencode-go": "OPENCODE_GO_API_KEY",
};

export type Environment = Readonly<Record<string, string | undefined>>;

/** The credential that the environment gives a provider. A variable of white space counts as not set. */
export function fromEnvironment(provider: string, environment: Environment): Credential | null {
  const variable = Object.hasOwn(VARIABLES, provider) ? VARIABLES[provider] : undefined;
  const key = variable === undefined ? "" : (environment[variable] ?? "").trim();
  return key === "" ? null : { type: "api_key", key };
}

/** Where a stored or found credential comes from, in words that hold no part of it. */
export function label(credential: Credential, source: "stored" | "environment", provider: string): string {
  const kind = credential.type === "api_key" ? "api-key" : "oauth";
  return source === "stored" ? `${kind} (vault)` : `${kind} (${VARIABLES[provider] ?? "environment"})`;
}

/** How a person gives this provider a key. */
export function wayToKey(provider: string): string {
  const variable = Object.hasOwn(VARIABLES, provider) ? VARIABLES[provider] : undefined;
  const store = `store it with auth::set_token {"provider":"${provider}",…}`;
  return `No key for ${provider}: ${variable === undefined ? store : `set ${variable} before the start, or ${store}`}`;
}
