// What a model reads as the result of a call.
import { type ContentBlock, DenialEnvelope, type FunctionResultMessage } from "@iii/contracts";

/** The text blocks of a content list, one per line. */
export function textOf(content: readonly ContentBlock[]): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

/** The text of a result. A denial is said first and in machine-readable form, so that a model does not take it for a fault. */
export function resultText(result: FunctionResultMessage): string {
  const text = textOf(result.content);
  const denial = DenialEnvelope.safeParse(result.details);
  return denial.success ? `[PERMISSION_DENIED]\n${JSON.stringify(denial.data)}\n\n${text}` : text;
}

const MAX_UNPARSED = 8_000;

/** The arguments of a call; what the model wrote, or its beginning, when that could not be used. */
export function argumentsOf(call: { arguments?: unknown; arguments_text?: string | undefined }): unknown {
  if (call.arguments !== null && call.arguments !== undefined) return call.arguments;
  return call.arguments_text === undefined ? {} : { unparsed_arguments: call.arguments_text.slice(0, MAX_UNPARSED) };
}
