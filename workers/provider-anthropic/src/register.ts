// Anthropic's Messages API as a provider.
import { COMMON_IMAGES, defineProvider, type ProviderSpec } from "@iii/provider-kit";
import { Config } from "./config.ts";
import { classify } from "./errors.ts";
import { fold, words } from "./events.ts";
import { models } from "./models.ts";
import { request } from "./request.ts";

/** Anthropic refuses thinking without its signature; servers that speak its wire send it unsigned, and some refuse the call without it. */
const isAnthropic = (url: string): boolean => URL.canParse(url) && /(?:^|\.)anthropic\.com$/.test(new URL(url).hostname);

export const spec: ProviderSpec<null, Config> = {
  name: "anthropic",
  display: "Anthropic",
  config: Config,
  begin: () => null,
  fold,
  words,
  request,
  classify,
  takes: { images: COMMON_IMAGES, max_image_bytes: 5 * 1024 * 1024, images_in_results: true, signed_only: isAnthropic },
  models,
  endpoint: { url: "https://api.anthropic.com/v1/messages", env: "ANTHROPIC_BASE_URL", path: "/v1/messages" },
  credential_env: "ANTHROPIC_API_KEY",
};

export const worker = defineProvider(spec);
