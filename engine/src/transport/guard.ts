// Who may open a listener on loopback: any page of any site can send requests to it, so Host and Origin are checked. Pure.

export interface GuardRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly upgrade: boolean;
}

export interface Refusal {
  readonly status: 400 | 403;
  readonly reason: string;
}

const LOOPBACK = /^(localhost|127\.(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){2}|\[::1\])$/;

function one(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.join(",");
}

/** `host[:port]` → whether it is a loopback literal. A name that only starts like one is not. */
export function isLoopbackHost(host: string): boolean {
  const match = /^(.*?)(?::(\d{1,5}))?$/.exec(host.toLowerCase());
  return match !== null && LOOPBACK.test(match[1] ?? "") && Number(match[2] ?? 0) <= 65_535;
}

/** Without the port, in lower case. */
function hostName(host: string): string {
  return host.toLowerCase().replace(/:\d{1,5}$/, "");
}

function isOwnOrigin(origin: string, host: string, allowed: readonly string[]): boolean {
  // A proxy before a listener that others reach speaks TLS; the name is what counts.
  const isOwn = origin === `http://${host.toLowerCase()}` || (!isLoopbackHost(host) && origin === `https://${host.toLowerCase()}`);
  return isOwn || allowed.includes(origin);
}

/** A browser's request without Origin: same-origin reads, and a person following a link or typing the address. */
function isPlainVisit(request: GuardRequest): boolean {
  const site = one(request.headers["sec-fetch-site"]);
  if (request.upgrade || (request.method !== "GET" && request.method !== "HEAD")) return site === undefined;
  if (site === undefined || site === "same-origin" || site === "none") return true;
  return one(request.headers["sec-fetch-mode"]) === "navigate" && one(request.headers["sec-fetch-dest"]) === "document";
}

/** Why a request is refused; undefined when it may pass. */
export function refuse(
  request: GuardRequest,
  allowedOrigins: readonly string[],
  allowedHosts: readonly string[] = [],
): Refusal | undefined {
  const host = one(request.headers["host"]);
  if (host === undefined) return { status: 400, reason: "a request needs a Host header" };
  if (!isLoopbackHost(host) && !allowedHosts.includes(hostName(host)))
    return { status: 403, reason: `the host '${host}' is not this machine; name it in engine.allowed_hosts` };
  const origin = one(request.headers["origin"]);
  if (origin !== undefined) {
    if (isOwnOrigin(origin.toLowerCase(), host, allowedOrigins)) return undefined;
    return { status: 403, reason: `the origin '${origin}' may not use this listener; allow it in engine.http.allowed_origins` };
  }
  return isPlainVisit(request) ? undefined : { status: 403, reason: "a page of another site may not use this listener" };
}
