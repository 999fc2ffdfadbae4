// Where requests go: the environment's base address, else the configured one, else the vendor's.

/** A path segment that is a version: `v1`, `v4`, `v1beta`. */
const VERSION = /^v\d+[a-z0-9]*$/;
const QUERY_VERSION = "api-version";

/**
 * `base` with the endpoint's path behind it, unless it already ends there; its query stays. A base that has a version of its own, in its
 * path (`/api/paas/v4`, `/v1beta/openai`) or its query (`?api-version=`), gets the path without ours.
 */
export function joinEndpoint(base: string, path: string): string {
  const url = new URL(base);
  const trimmed = url.pathname.replace(/\/+$/, "");
  const [, version = "", rest = path] = /^(\/v\d+)(\/.*)$/.exec(path) ?? [];
  const versioned = trimmed.split("/").some((segment) => VERSION.test(segment)) || url.searchParams.has(QUERY_VERSION);
  const whole = trimmed.endsWith(rest) || path === "";
  url.pathname = whole ? trimmed : trimmed + (versioned && version !== "" ? rest : path);
  return url.href;
}

/** The address for an endpoint. `env` names a variable with a base address, so that a stand-in server can take the vendor's place. */
export function endpointUrl(
  endpoint: { readonly url: string; readonly env?: string; readonly path?: string },
  configured: { readonly api_url?: string | undefined; readonly api_path?: string | undefined },
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const base = (endpoint.env === undefined ? undefined : environment[endpoint.env]) || configured.api_url;
  if (base === undefined || endpoint.path === undefined) return configured.api_url ?? endpoint.url;
  if (configured.api_path === undefined) return joinEndpoint(base, endpoint.path);
  if (configured.api_path === "") return base;
  const url = new URL(base);
  url.pathname = url.pathname.replace(/\/+$/, "") + configured.api_path;
  return url.href;
}
