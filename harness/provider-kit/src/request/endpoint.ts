// Where requests go: the environment's base address, else the configured one, else the vendor's.

/** `base` with the endpoint's path behind it, unless it already ends there. A version segment is not repeated. */
export function joinEndpoint(base: string, path: string): string {
  const trimmed = base.replace(/\/+$/, "");
  if (trimmed.endsWith(path)) return trimmed;
  const [, version = ""] = path.match(/^(\/v\d+)\//) ?? [];
  return version !== "" && trimmed.endsWith(version) ? trimmed + path.slice(version.length) : trimmed + path;
}

/** The address for an endpoint. `env` names a variable with a base address, so that a stand-in server can take the vendor's place. */
export function endpointUrl(
  endpoint: { readonly url: string; readonly env?: string; readonly path?: string },
  configured: string | undefined,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const base = endpoint.env === undefined ? undefined : environment[endpoint.env];
  if (base !== undefined && base !== "") return joinEndpoint(base, endpoint.path ?? "");
  return configured ?? endpoint.url;
}
