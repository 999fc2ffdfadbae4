// What servers of this family call an error: `{error: {message, type, code}}`, `{error: "text"}`, and the forms of those who have their own.
import { classifyHttp, classifyNamed } from "../failures.ts";
import { absent, type Fields, record, shown, text } from "../read.ts";
import type { Failure, Headers } from "../spec.ts";

const word = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? String(value) : "");

/** The words of an error; gateways put those of the vendor behind them in `metadata`. */
function wordsOf(error: Fields): string {
  const message =
    text(error["message"]) ?? text(error["detail"]) ?? text(error["error"]) ?? shown(error["message"] ?? error["detail"] ?? error);
  const metadata = record(error["metadata"]);
  const behind = metadata === undefined ? undefined : (text(metadata["raw"]) ?? metadata["reasons"]);
  return behind === undefined ? message : `${message}: ${text(behind) ?? shown(behind)}`;
}

/** An error object, or whatever stands where one was expected. `status` is undefined inside a stream. */
export function openAiFailure(status: number | undefined, error: unknown): Failure {
  const fields = record(error);
  if (fields === undefined) return classifyNamed(status, "", text(error) ?? shown(error));
  const code = fields["code"];
  const inside = typeof code === "number" && code >= 400 && code < 600 ? code : undefined;
  const called = [fields["type"], code, fields["status"]].map(word).join(" ");
  return classifyNamed(status ?? inside, called, wordsOf(fields));
}

/** The error in a body or an event, when it has one. Servers write `error: null` beside good answers. */
export function errorIn(fields: Fields): unknown {
  const { error } = fields;
  if (!absent(error) && error !== false) return error;
  const named = fields["object"] === "error" || fields["type"] === "error";
  return named || (absent(fields["choices"]) && !absent(fields["detail"])) ? fields : undefined;
}

/** HTTP failures of this family. */
export function openAiClassify(status: number, _headers: Headers, body: string): Failure {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return classifyHttp(status, body); // not JSON: the text is the message
  }
  const fields = record(Array.isArray(value) ? value[0] : value);
  if (fields === undefined) return classifyHttp(status, body);
  return openAiFailure(status, errorIn(fields) ?? fields);
}
