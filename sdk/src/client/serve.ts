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
} from "../define.ts";
import { BusError } from "../errors.ts";

/** The engine names the caller inside object payloads; a definition's schema does not know that key. */
function withoutCallerId(data: unknown): unknown {
  if (typeof data !== "object" || data === null || !Object.hasOwn(data, "_caller_worker_id")) return data;
  const { _caller_worker_id: _, ...rest } = data as Record<string, unknown>;
  return rest;
}

export function serveDefinition<I extends z.ZodType, O extends z.ZodType>(
  definition: FunctionDefinition<I, O>,
  handler: Handler<z.output<I>, z.input<O>>,
): { run: Handler; options: RegisterOptions } {
  const run = async (data: unknown, call: Call): Promise<unknown> => {
    const input = parsePayload(definition.input, withoutCallerId(data), definition.id);
    const output = await handler(input, call);
    const checked = definition.output.safeParse(output);
    if (checked.success) return checked.data;
    const issue = checked.error.issues[0];
    const field = issue === undefined || issue.path.length === 0 ? "the result" : `'${issue.path.join(".")}'`;
    throw new BusError(
      "serialization_error",
      `${definition.id} returned something it must not: ${field}: ${issue?.message ?? "unknown reason"}`,
    );
  };
  const options: RegisterOptions = {
    description: definition.about,
    request_format: requestFormat(definition),
    response_format: responseFormat(definition),
    ...(Object.keys(definition.metadata).length === 0 ? {} : { metadata: definition.metadata }),
  };
  return { run, options };
}
