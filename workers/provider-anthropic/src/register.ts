// Anthropic's Messages API as a provider.
import { defineProvider } from "@iii/provider-kit";
import { classify } from "./errors.ts";
import { begin, finish, fold, Wire } from "./events.ts";
import { models } from "./models.ts";
import { Config, request } from "./request.ts";

export const worker = defineProvider({
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
});
