// A generate request as Chat Completions messages and tools, for OpenAI and compatible servers. Pure.
import type { ContentBlock, FunctionResultMessage, GenerateRequest } from "@iii/contracts";
import { type AssistantTurn, paired, type Turn } from "../request/pairing.ts";
import { argumentsOf, resultText, textOf } from "../request/result-text.ts";
import { effectiveLevel } from "../request/thinking.ts";
import type { Credential, HttpRequest, ProviderSettings, RequestContext } from "../spec.ts";

type Part = Record<string, unknown>;

function userContent(content: readonly ContentBlock[], vision: boolean): string | Part[] {
  if (!vision || !content.some((block) => block.type === "image")) return textOf(content);
  return content.flatMap((block): Part[] => {
    if (block.type === "text") return block.text === "" ? [] : [{ type: "text", text: block.text }];
    if (block.type !== "image") return [];
    return [{ type: "image_url", image_url: { url: `data:${block.mime};base64,${block.data}` } }];
  });
}

function assistant(turn: AssistantTurn, name: (id: string) => string): Part[] {
  const text = textOf(turn.content);
  const tool_calls = turn.content.flatMap((block) =>
    block.type === "function_call"
      ? [{ id: block.id, type: "function", function: { name: name(block.function_id), arguments: JSON.stringify(argumentsOf(block)) } }]
      : [],
  );
  if (text === "" && tool_calls.length === 0) return [];
  return [{ role: "assistant", content: text === "" ? null : text, ...(tool_calls.length === 0 ? {} : { tool_calls }) }];
}

function results(list: readonly FunctionResultMessage[], vision: boolean): Part[] {
  const tools = list.map((result) => ({ role: "tool", tool_call_id: result.function_call_id, content: resultText(result) }));
  const images = vision ? list.flatMap((result) => result.content.filter((block) => block.type === "image")) : [];
  // This wire takes no image in a tool message: the pictures follow as the user's.
  return images.length === 0 ? tools : [...tools, { role: "user", content: userContent(images, true) }];
}

/** The conversation as this wire's messages. */
export function openAiMessages(request: GenerateRequest, options: { vision: boolean; toolName(id: string): string }): Part[] {
  const prompt = request.system_prompt ?? "";
  const turns = paired(request.messages).flatMap((turn: Turn): Part[] => {
    if (turn.role === "assistant") return [...assistant(turn, options.toolName), ...results(turn.results, options.vision)];
    const content = userContent(turn.content, options.vision);
    return content.length === 0 ? [] : [{ role: "user", content }];
  });
  return prompt.trim() === "" ? turns : [{ role: "system", content: prompt }, ...turns];
}

const EFFORT = { minimal: "minimal", low: "low", medium: "medium", high: "high", xhigh: "xhigh" } as const;

function bearer(credential: Credential | undefined): Record<string, string> {
  if (credential === undefined) return {};
  return { authorization: `Bearer ${credential.type === "api_key" ? credential.key : credential.access_token}` };
}

/** The whole request for a server that speaks this wire. */
export function openAiRequest(generate: GenerateRequest, context: RequestContext<ProviderSettings>): HttpRequest {
  const { config, model, credential, url, toolName } = context;
  const wanted = generate.max_output_tokens ?? config.default_max_tokens;
  const level = effectiveLevel(generate.thinking_level, model);
  const tools = generate.tools.map(({ name, description, parameters }) => ({
    type: "function",
    function: { name: toolName(name), description, parameters },
  }));
  return {
    url,
    headers: bearer(credential),
    body: {
      model: generate.model,
      max_completion_tokens: Math.min(wanted, model?.max_output_tokens ?? wanted),
      messages: openAiMessages(generate, { vision: model?.supports_vision !== false, toolName: (id) => toolName(id) }),
      ...(tools.length === 0 ? {} : { tools }),
      ...(level === "off" ? {} : { reasoning_effort: EFFORT[level] }),
      stream: true,
      stream_options: { include_usage: true },
    },
  };
}
