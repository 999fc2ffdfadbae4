// What the browser of an allowed page is told, so that the page may read answers. Who is allowed, the guard decides. Pure.
import type { HttpResponse } from "../builtin/http/port.ts";

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Seconds that a browser may remember a preflight's answer. */
const MAX_AGE = "600";

function allowedOrigin(headers: Headers, allowedOrigins: readonly string[]): string | undefined {
  const { origin } = headers;
  return typeof origin === "string" && allowedOrigins.includes(origin.toLowerCase()) ? origin : undefined;
}

function text(value: string | readonly string[] | undefined): string {
  return typeof value === "string" ? value : "";
}

/** The answer to a browser that asks before it sends; undefined for every other request. */
export function preflight(method: string | undefined, headers: Headers, allowedOrigins: readonly string[]): HttpResponse | undefined {
  const wanted = text(headers["access-control-request-method"]);
  if (method !== "OPTIONS" || wanted === "" || allowedOrigin(headers, allowedOrigins) === undefined) return undefined;
  const names = text(headers["access-control-request-headers"]);
  return {
    status: 204,
    headers: [
      ["access-control-allow-methods", wanted],
      ...(names === "" ? [] : [["access-control-allow-headers", names] as const]),
      ["access-control-max-age", MAX_AGE],
    ],
  };
}

/** The same answer, readable for the allowed page that asked. A function that says so itself is not overruled. */
export function readable(answer: HttpResponse, headers: Headers, allowedOrigins: readonly string[]): HttpResponse {
  const origin = allowedOrigin(headers, allowedOrigins);
  if (origin === undefined || answer.headers.some(([name]) => name.toLowerCase() === "access-control-allow-origin")) return answer;
  return { ...answer, headers: [...answer.headers, ["access-control-allow-origin", origin], ["vary", "origin"]] };
}
