// Anthropic's Messages API as a provider.
import { defineProvider, type ProviderSpec } from "@iii/provider-kit";
import { Config } from "./config.ts";
import { classify } from "./errors.ts";
import { begin, type Fold, finish, fold, Wire } from "./events.ts";
import { models } from "./models.ts";
import { request } from "./request.ts";

export const spec: ProviderSpec<typeof Wire, Fold, Config> = {
  name: "anthropic",
  display: "Anthropic",
  config: Config,
  wire: Wire,
  begin,
  fold,
  finish,
  request,
  classify,
  models,
  endpoint: { url: "https://api.anthropic.com/v1/messages", env: "ANTHROPIC_BASE_URL", path: "/v1/messages" },
  credential_env: "ANTHROPIC_API_KEY",
};

export const worker = defineProvider(spec);
