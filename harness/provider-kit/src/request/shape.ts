// A request as a compatible server wants it: what a provider's config renames, leaves out and adds. Pure.
import { isSecretKey } from "@iii/sdk";
import type { Credential } from "@iii/worker-auth-credentials/contract";
import type { HttpRequest, ProviderSettings } from "../spec.ts";

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const without = (fields: Fields, names: ReadonlySet<string>): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.has(name)));

const IN_MESSAGES = "messages.";

function shapedBody(body: Fields, config: ProviderSettings): Fields {
  const inMessages = config.leave_out.flatMap((name) => (name.startsWith(IN_MESSAGES) ? [name.slice(IN_MESSAGES.length)] : []));
  const kept = without(body, new Set(config.leave_out));
  const renamed = Object.fromEntries(
    Object.entries(kept).map(([name, value]) => [Object.hasOwn(config.rename, name) ? config.rename[name] : name, value]),
  );
  const { messages } = renamed;
  const some = new Set(inMessages);
  const cut =
    some.size > 0 && Array.isArray(messages) ? { messages: messages.map((one) => (isFields(one) ? without(one, some) : one)) } : {};
  return { ...renamed, ...cut, ...config.body };
}

/** Headers in lower case, so that a later one replaces an earlier one. */
const lowered = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** The secret of a credential. */
export const secretOf = (credential: Credential): string => (credential.type === "api_key" ? credential.key : credential.access_token);

function keyHeader(config: ProviderSettings, credential: Credential | undefined): Record<string, string> {
  const name = config.key_header?.toLowerCase();
  if (name === undefined || credential === undefined) return {};
  const secret = secretOf(credential);
  return { [name]: name === "authorization" ? `Bearer ${secret}` : secret };
}

const KEY_HEADERS: ReadonlySet<string> = new Set(["authorization", "x-api-key"]);

/** The user and password of an address, which `fetch` takes in a header only. */
function userInfo(address: string): { readonly url: string; readonly headers: Record<string, string> } {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || (url.username === "" && url.password === "")) return { url: address, headers: {} };
  const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = "";
  url.password = "";
  return { url: url.href, headers: { authorization: `Basic ${Buffer.from(pair).toString("base64")}` } };
}

/** The request with the config's wishes: where the key stands, more headers, fields by other names, left out, added. */
export function shaped(request: HttpRequest, config: ProviderSettings, credential: Credential | undefined): HttpRequest {
  const { url, headers } = userInfo(request.url);
  const own = config.key_header === undefined ? request.headers : without(request.headers, KEY_HEADERS);
  const all = { ...headers, ...lowered(own as HttpRequest["headers"]), ...keyHeader(config, credential), ...lowered(config.headers) };
  return { url, headers: all, body: isFields(request.body) ? shapedBody(request.body, config) : request.body };
}

/** All that must not be seen of a request: the key, the address's password, and headers and query values whose names say so. */
export function secretsOf(address: string, config: ProviderSettings, credential: Credential | undefined): string[] {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const query = [...(url?.searchParams ?? [])].filter(([name]) => name === "key" || isSecretKey(name));
  const headers = Object.entries(config.headers).filter(([name]) => isSecretKey(name));
  const named = [...query, ...headers].map(([, value]) => value.replace(/^(?:Bearer|Basic)\s+/i, ""));
  const password = url === undefined ? "" : decodeURIComponent(url.password);
  return [...(credential === undefined ? [] : [secretOf(credential)]), password, ...named].filter((secret) => secret !== "");
}
