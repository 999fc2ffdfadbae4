// The keyless provider: obeys the last user message, on the same path as every other provider.
import { defineProvider, type ProviderSpec } from "@iii/provider-kit";
import { Config } from "./config.ts";
import { classify } from "./errors.ts";
import { fold, Wire } from "./events.ts";
import { models } from "./models.ts";
import { request } from "./request.ts";
import { stage } from "./stage.ts";

export const spec: ProviderSpec<typeof Wire, null, Config> = {
  name: "scripted",
  display: "Demo",
  config: Config,
  wire: Wire,
  begin: () => null,
  fold,
  request,
  classify,
  models,
  endpoint: { url: "script://demo" },
  credential: "none",
};

export const worker = defineProvider(spec, { transport: ({ clock }) => stage(clock) });
