// A definition and its handler as something that can be registered: input parsed, output checked, schemas for the catalogue.
import type { z } from "zod";
import {
  type Call,
  type FunctionDefinition,
  type Handler,
  parsePayload,
  type RegisterOptions,
  requestFormat,
  responseFormat,
} from "../definition.ts";
import { BusError } from "../errors.ts";
import { issueText } from "../issues.ts";
import { isThenable } from "./frame-text.ts";

/** The engine names the caller inside object payloads; a definition's schema does not know that key. */
function withoutCallerId(data: unknown): unknown {
  if (typeof data !== "object" || data === null || !Object.hasOwn(data, "_caller_worker_id")) return data;
  const { _caller_worker_id: _, ...rest } = data as Record<string, unknown>;
  return rest;
}

/** @throws BusError `serialization_error` naming the fields that a handler got wrong. */
function checkOutput(definition: FunctionDefinition, output: unknown): unknown {
  const checked = definition.output.safeParse(output);
  if (checked.success) return checked.data;
  throw new BusError("serialization_error", `${definition.id} returned something it must not: ${issueText(checked.error, "the result")}`);
}

/** With `raw` the handler gets its input as it came; else parsed, so that a bad one never reaches it. */
export function serveDefinition<I extends z.ZodType, O extends z.ZodType>(
  definition: FunctionDefinition<I, O>,
  handler: Handler<never, z.input<O>>,
  raw: boolean,
): { run: Handler; options: RegisterOptions } {
  const check = (output: unknown): unknown => checkOutput(definition, output);
  const run = (data: unknown, call: Call): unknown => {
    const given = withoutCallerId(data);
    const input = raw ? given : parsePayload(definition.input, given, definition.id);
    const output = (handler as Handler<unknown, z.input<O>>)(input, call);
    return isThenable(output) ? output.then(check) : check(output);
  };
  const options: RegisterOptions = {
    description: definition.about,
    request_format: requestFormat(definition),
    response_format: responseFormat(definition),
    ...(Object.keys(definition.metadata).length === 0 ? {} : { metadata: definition.metadata }),
  };
  return { run, options };
}
