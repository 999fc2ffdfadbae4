// A request to the scripted model: its body is the script of the answer.
import type { GenerateRequest } from "@iii/contracts";
import { type HttpRequest, ProviderSettings, type RequestContext } from "@iii/provider-kit";
import { z } from "zod";
import { scriptFor } from "./script.ts";

export const Config = ProviderSettings.extend({
  /** A fault is what was asked for: it is not tried again. */
  max_retries: z.int().nonnegative().default(0),
  /** Pause before each word. */
  word_ms: z.number().nonnegative().default(0),
});
export type Config = z.infer<typeof Config>;

export function request(generate: GenerateRequest, context: RequestContext<Config>): HttpRequest {
  return { url: context.url, headers: {}, body: scriptFor(generate, { word_ms: context.config.word_ms }) };
}
