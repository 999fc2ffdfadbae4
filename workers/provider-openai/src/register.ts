// OpenAI's Chat Completions as a provider. The protocol is the family's, shared with every compatible server.
import { defineProvider, type OpenAiFold, openAi, ProviderSettings, type ProviderSpec } from "@iii/provider-kit";
import { models } from "./models.ts";

export const spec: ProviderSpec<OpenAiFold, ProviderSettings> = {
  name: "openai",
  display: "OpenAI",
  config: ProviderSettings,
  ...openAi,
  models,
  endpoint: { url: "https://api.openai.com/v1/chat/completions", env: "OPENAI_BASE_URL", path: "/v1/chat/completions" },
  credential_env: "OPENAI_API_KEY",
};

export const worker = defineProvider(spec);
