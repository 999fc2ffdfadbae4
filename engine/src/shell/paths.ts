// Which service a socket's path means. Clients append their paths to a base address, so `/ws` may stand in front, even twice.

export interface WirePath {
  /** `""` for the worker socket, else the first segment: `otel`, `channels`. */
  readonly service: string;
  readonly rest: string;
  readonly query: URLSearchParams;
}

export function parsePath(path: string): WirePath {
  const [before = "", after = ""] = splitOnce(path, "?");
  const segments = before.split("/").filter((segment) => segment !== "");
  for (let i = 0; i < 2 && segments[0] === "ws"; i += 1) segments.shift();
  const [service = "", ...rest] = segments;
  return { service, rest: rest.join("/"), query: new URLSearchParams(after) };
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
