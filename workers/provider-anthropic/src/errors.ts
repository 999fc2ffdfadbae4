// HTTP failures of Anthropic: `{type: "error", error: {type, message}}`, also with status 529 (overloaded). Pure.
import { absent, classifyHttp, type Failure, type Headers, record } from "@iii/provider-kit";
import { failureOf } from "./events.ts";

export function classify(status: number, _headers: Headers, body: string): Failure {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return classifyHttp(status, body); // not JSON: the text is the message
  }
  const fields = record(value);
  if (fields === undefined) return classifyHttp(status, body);
  return failureOf(status, absent(fields["error"]) ? fields : fields["error"]);
}
