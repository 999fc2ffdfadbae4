// A healed request as Chat Completions messages and tools, for OpenAI and compatible servers. Pure.
import type { ContentBlock, FunctionCallBlock } from "@iii/contracts";
import type { Credential } from "@iii/worker-auth-credentials/contract";
import type { HealedRequest } from "../request/doctor.ts";
import type { AssistantTurn, Turn } from "../request/pairing.ts";
import { argumentsOf, resultText, textOf } from "../request/result-text.ts";
import { effectiveLevel } from "../request/thinking.ts";
import type { HttpRequest, ProviderSettings, RequestContext } from "../spec.ts";

type Part = Record<string, unknown>;

function userContent(content: readonly ContentBlock[]): string | Part[] {
  if (!content.some((block) => block.type === "image")) return textOf(content);
  return content.flatMap((block): Part[] => {
    if (block.type === "text") return [{ type: "text", text: block.text }];
    if (block.type !== "image") return [];
    return [{ type: "image_url", image_url: { url: `data:${block.mime};base64,${block.data}` } }];
  });
}

function callPart(call: FunctionCallBlock, name: (id: string) => string): Part {
  const extra = call.extra === undefined ? {} : { extra_content: call.extra };
  return {
    id: call.id,
    type: "function",
    function: { name: name(call.function_id), arguments: JSON.stringify(argumentsOf(call)) },
    ...extra,
  };
}

/** Thinking in the form in which the server sent it. The doctor has left in only what is this server's. */
function thoughts({ message, content }: AssistantTurn, text: string): Part {
  const { reasoning, fields = {} } = message.vendor ?? {};
  const thought = content.flatMap((block) => (block.type === "thinking" ? [block.text] : [])).join("");
  if (thought === "" || reasoning === undefined) return fields;
  if (reasoning !== "content") return { [reasoning]: thought, ...fields };
  const parts = [{ type: "thinking", thinking: [{ type: "text", text: thought }] }, ...(text === "" ? [] : [{ type: "text", text }])];
  return { ...fields, content: parts };
}

function assistant(turn: AssistantTurn, name: (id: string) => string): Part {
  const text = textOf(turn.content);
  const tool_calls = turn.content.flatMap((block) => (block.type === "function_call" ? [callPart(block, name)] : []));
  const content = text === "" ? null : text;
  return { role: "assistant", content, ...thoughts(turn, text), ...(tool_calls.length === 0 ? {} : { tool_calls }) };
}

/** The conversation as this wire's messages. */
function messagesOf(request: HealedRequest, name: (id: string) => string): Part[] {
  const prompt = request.system_prompt ?? "";
  const turns = request.turns.flatMap((turn: Turn): Part[] => {
    if (turn.role === "user") return [{ role: "user", content: userContent(turn.content) }];
    const results = turn.results.map((one) => ({ role: "tool", tool_call_id: one.function_call_id, content: resultText(one) }));
    return [assistant(turn, name), ...results];
  });
  return prompt.trim() === "" ? turns : [{ role: "system", content: prompt }, ...turns];
}

function bearer(credential: Credential | undefined): Record<string, string> {
  if (credential === undefined) return {};
  return { authorization: `Bearer ${credential.type === "api_key" ? credential.key : credential.access_token}` };
}

/** The whole request for a server that speaks this wire. */
export function openAiRequest(generate: HealedRequest, context: RequestContext<ProviderSettings>): HttpRequest {
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
      messages: messagesOf(generate, (id) => toolName(id)),
      ...(tools.length === 0 ? {} : { tools }),
      ...(level === "off" ? {} : { reasoning_effort: level }),
      stream: true,
      stream_options: { include_usage: true },
    },
  };
}
