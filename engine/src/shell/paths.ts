// Which service a socket's path means, and with whose token. Clients append their paths to a base address, so `/ws` may stand in front,
// even twice, and `/as/<token>` before what they append.

export interface WirePath {
  /** What stands behind `/as/`: never logged. Empty when the segment is missing; undefined when there is no `/as`. */
  readonly token: string | undefined;
  /** `""` for the worker socket, else the first segment: `otel`, `channels`. */
  readonly service: string;
  readonly rest: string;
  readonly query: URLSearchParams;
}

export function parsePath(path: string): WirePath {
  const [before = "", after = ""] = splitOnce(path, "?");
  const segments = before.split("/").filter((segment) => segment !== "");
  const skip = (): void => {
    for (let i = 0; i < 2 && segments[0] === "ws"; i += 1) segments.shift();
  };
  skip();
  const token = segments[0] === "as" ? (segments.splice(0, 2)[1] ?? "") : undefined;
  skip();
  const [service = "", ...rest] = segments;
  return { token, service, rest: rest.join("/"), query: new URLSearchParams(after) };
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
