// From what a function returned, or threw, to an HTTP response. Pure.
import { type BusError, toBusError } from "@iii/sdk";
import { Unanswered } from "../../ports/host.ts";
import { type HttpResponse, jsonResponse } from "./port.ts";

type Headers = [string, string][];

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** The listener sets these; a function that could set them could break the framing of the response. */
const OURS = new Set(["content-length", "transfer-encoding", "connection", "keep-alive", "upgrade"]);

function fromLine(line: unknown): Headers {
  if (typeof line !== "string" || line.indexOf(":") < 1) return [];
  const colon = line.indexOf(":");
  return [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()]];
}

function fromEntry([name, value]: [string, unknown]): Headers {
  return (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)]);
}

/** Headers as functions give them: an object, whose values may be lists, or a list of `"Name: value"` lines. Broken ones are left out. */
export function headerList(value: unknown): Headers {
  const pairs = Array.isArray(value) ? value.flatMap(fromLine) : isRecord(value) ? Object.entries(value).flatMap(fromEntry) : [];
  return pairs.filter(([name, text]) => HEADER_NAME.test(name) && !/[\r\n\0]/.test(text) && !OURS.has(name.toLowerCase()));
}

/** A status that can end a request; undefined for anything else. */
export function finalStatus(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 200 && value <= 599 ? value : undefined;
}

function bodyText(body: unknown, type: string | undefined): string {
  if (type === undefined) return JSON.stringify(body);
  if (body === null) return "";
  return typeof body === "string" ? body : JSON.stringify(body);
}

/** A handler's return value `{status_code?, headers?, body?}` as a response; anything that is not an object is an empty 200. */
export function fromReturn(value: unknown): HttpResponse {
  const { status_code, headers: given, body = {} } = isRecord(value) ? value : {};
  const headers = headerList(given);
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1];
  if (type === undefined) headers.push(["content-type", "application/json"]);
  return { status: finalStatus(status_code) ?? 200, headers, body: bodyText(body, type) };
}

const STATUS: Readonly<Record<string, number>> = {
  invalid_payload: 400,
  id_invalid: 400,
  deserialization_error: 400,
  payload_too_deep: 400,
  payload_too_large: 413,
  FORBIDDEN: 403,
  session_busy: 409,
  too_many_in_flight: 429,
  store_unavailable: 503,
  STORE_FULL: 507,
};

/** A function did not answer in time. What it threw itself is its own affair, whatever the code. */
export function isLate(error: unknown): boolean {
  return error instanceof Unanswered && error.code === "TIMEOUT";
}

/** What a caller sees when the function threw: its code and words, and an id to find it in the log. */
export function fromError(thrown: unknown, errorId: string): HttpResponse {
  const error: BusError = toBusError(thrown);
  if (isLate(error)) return { status: 504, headers: [] };
  const details = error.details === undefined ? {} : { details: error.details };
  return jsonResponse(STATUS[error.code] ?? 500, { error: { code: error.code, message: error.message, error_id: errorId, ...details } });
}

/** Middleware that did not answer in time. */
export const middlewareTimeout = (errorId: string): HttpResponse =>
  jsonResponse(504, { error: { code: "MIDDLEWARE_TIMEOUT", message: "the route's middleware did not answer in time", error_id: errorId } });
export const notFound = (): HttpResponse => jsonResponse(404, { error: { code: "NOT_FOUND", message: "Not Found" } });
export const notAllowed = (methods: readonly string[]): HttpResponse => ({ status: 405, headers: [["allow", methods.join(", ")]] });
export const conditionNotMet = (): HttpResponse =>
  jsonResponse(422, { error: { code: "CONDITION_NOT_MET", message: "the route's condition was not met" }, skipped: true });
