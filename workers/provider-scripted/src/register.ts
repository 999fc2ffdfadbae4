// The keyless provider: obeys the last user message, on the same path as every other provider.
import { defineProvider } from "@iii/provider-kit";
import { classify } from "./errors.ts";
import { fold, Wire } from "./events.ts";
import { models } from "./models.ts";
import { Config, request } from "./request.ts";
import { stage } from "./stage.ts";

export const worker = defineProvider(
  {
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
  },
  { transport: ({ clock }) => stage(clock) },
);
