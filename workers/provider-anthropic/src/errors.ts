// HTTP failures of Anthropic: `{type: "error", error: {type, message}}`, also with status 529 (overloaded).
import { classifyHttp, type Failure, type Headers } from "@iii/provider-kit";
import { z } from "zod";
import { failureOf } from "./events.ts";

const Body = z.object({ error: z.object({ type: z.string(), message: z.string() }) });

function parse(body: string): z.infer<typeof Body> | undefined {
  try {
    return Body.safeParse(JSON.parse(body)).data;
  } catch {
    return undefined;
  }
}

export function classify(status: number, _headers: Headers, body: string): Failure {
  const error = parse(body)?.error;
  if (error === undefined) return classifyHttp(status, body);
  const byType = failureOf(error.type, error.message);
  return byType === undefined ? classifyHttp(status, error.message) : { ...byType, message: `${status}: ${byType.message}` };
}
