// A request to the scripted model: its body is the script of the answer.
import type { HealedRequest, HttpRequest, RequestContext } from "@iii/provider-kit";
import type { Config } from "./config.ts";
import { scriptFor } from "./script.ts";

export function request(generate: HealedRequest, context: RequestContext<Config>): HttpRequest {
  return { url: context.url, headers: {}, body: scriptFor(generate, { word_ms: context.config.word_ms }) };
}
