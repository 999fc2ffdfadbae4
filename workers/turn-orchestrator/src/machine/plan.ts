// From a model's message to the calls of a batch: own unique ids, the meta tool unwrapped, mistakes answered. Pure.
import type { AssistantMessage, FunctionCallBlock } from "@iii/contracts";
import { CallId, FunctionId } from "@iii/sdk";
import type { TurnCall } from "./record.ts";
import { errorResult, type Settled } from "./results.ts";
import { META_TOOL, META_TOOL_SCHEMA } from "./tool.ts";

const MAX_KEPT_ID = 64;

/**
 * The same message with call ids that are safe as keys and unlike every id in `used` and each other: vendors repeat theirs.
 * Deterministic: a replacement is made of `prefix` and the block's place.
 */
export function uniqueCallIds(message: AssistantMessage, used: ReadonlySet<string>, prefix: string): AssistantMessage {
  const taken = new Set(used);
  const content = message.content.map((block, index) => {
    if (block.type !== "function_call") return block;
    const keep = block.id.length <= MAX_KEPT_ID && CallId.safeParse(block.id).success && !taken.has(block.id);
    const id = keep ? block.id : `${prefix}_${index}`;
    taken.add(id);
    return { ...block, id };
  });
  return { ...message, content };
}

interface Unwrapped {
  readonly function_id: string;
  readonly args: unknown;
  readonly note?: string;
}

const BAD_JSON_HINT = `the arguments of '${META_TOOL}' must be one JSON object that matches ${JSON.stringify(META_TOOL_SCHEMA)}`;

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined; // not JSON: the caller answers the model
  }
}

function payloadOf(payload: unknown, function_id: string): Unwrapped | Settled {
  if (payload === undefined || payload === null) return { function_id, args: {} };
  if (asObject(payload) !== undefined) return { function_id, args: payload };
  const parsed = typeof payload === "string" ? parseObject(payload) : undefined;
  if (parsed !== undefined) return { function_id, args: parsed, note: "note: `payload` was a JSON string and was parsed; send an object" };
  return errorResult("invalid_arguments", `\`payload\` must be a JSON object; ${BAD_JSON_HINT}`, { function: function_id });
}

/** What one block asks for, or the error the model gets back without anyone being asked. */
export function unwrap(block: FunctionCallBlock): Unwrapped | Settled {
  if (block.function_id !== META_TOOL)
    return errorResult(
      "missing_function",
      `there is no tool '${block.function_id}'; call '${META_TOOL}' with {"function": "<id>", "payload": {…}}`,
    );
  const args = asObject(block.arguments);
  if (args === undefined) {
    const wrote = block.arguments_text === undefined ? {} : { wrote: block.arguments_text.slice(0, 2_000).toWellFormed() };
    return errorResult("invalid_arguments", BAD_JSON_HINT, wrote);
  }
  const name = args["function"];
  if (typeof name !== "string" || name === "") return errorResult("missing_function", `'function' is missing; ${BAD_JSON_HINT}`);
  if (!FunctionId.safeParse(name).success)
    return errorResult("missing_function", "'function' must be 1 to 256 printable ASCII characters without spaces", {
      function: name.slice(0, 256),
    });
  return payloadOf(args["payload"], name);
}

function isSettled(value: Unwrapped | Settled): value is Settled {
  return "result" in value;
}

/** A call as it is planned and, when it is not to be made at all, the result that it gets at once. */
export interface PlannedCall {
  readonly call: TurnCall & { phase: "planned" };
  readonly settled?: Settled;
}

function planOne(block: FunctionCallBlock, refuse: Settled | undefined): PlannedCall {
  const what = unwrap(block);
  const { id } = block;
  if (isSettled(what) || refuse !== undefined) {
    const { function_id, args } = isSettled(what) ? { function_id: block.function_id, args: block.arguments ?? {} } : what;
    return { call: { id, function_id, args, phase: "planned" }, settled: refuse ?? (what as Settled) };
  }
  return { call: { id, ...what, phase: "planned" } };
}

/** So many calls of one answer are made: each is a step of its own with all others in its record. */
const MAX_CALLS = 128;
const TOO_MANY = errorResult("not_run", `not run: one answer may make ${MAX_CALLS} calls; make the rest in the next one`);

/** The calls of a message in its order. A message that was cut at the length limit runs none of its calls; each gets a result that says so. */
export function planCalls(message: AssistantMessage): PlannedCall[] {
  const refuse =
    message.stop_reason === "length"
      ? errorResult("not_run", "not run: the answer was cut at its length limit, so the call may be incomplete")
      : undefined;
  const blocks = message.content.filter((block) => block.type === "function_call");
  return blocks.map((block, index) => planOne(block, index < MAX_CALLS ? refuse : (refuse ?? TOO_MANY)));
}

/** For `function_not_found`: an id that looks like a skill path, as the function id that it probably means. */
export function idHint(function_id: string): string | undefined {
  if (function_id.includes("::") || !function_id.includes("/")) return undefined;
  const parts = function_id.split("/").filter((part) => part !== "" && part !== "skills");
  const [worker, ...rest] = parts;
  if (worker === undefined || rest.length === 0) return undefined;
  return [worker, ...rest.filter((part) => part !== worker)].join("::");
}

/** Nobody serves the function: what was probably meant. */
export function notFound(function_id: string): Settled {
  const meant = idHint(function_id);
  const hint =
    meant === undefined
      ? "look the id up with engine::functions::list"
      : `this looks like a skill path; the function is probably '${meant}'`;
  return errorResult("function_not_found", `nobody serves '${function_id}'`, { function: function_id, hint });
}
