// The keyless provider: obeys the last user message, on the same path as every other provider.
import { defineProvider, type ProviderSpec } from "@iii/provider-kit";
import { Config } from "./config.ts";
import { classify } from "./errors.ts";
import { fold, words } from "./events.ts";
import { models } from "./models.ts";
import { request } from "./request.ts";
import { stage } from "./stage.ts";

export const spec: ProviderSpec<null, Config> = {
  name: "scripted",
  display: "Demo",
  config: Config,
  begin: () => null,
  fold,
  words,
  request,
  classify,
  takes: { images: new Set(), max_image_bytes: 0, images_in_results: true, signed_only: () => true },
  models,
  endpoint: { url: "script://demo" },
  credential: "none",
};

export const worker = defineProvider(spec, { transport: ({ clock }) => stage(clock) });
