// auth::*: the credentials of model providers. Schemas and definitions only. Never reachable by an agent or a browser.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";

export const ApiKey = z.object({ type: z.literal("api_key"), key: z.string().min(1) });
export const OAuth = z.object({
  type: z.literal("oauth"),
  access_token: z.string().min(1),
  refresh_token: z.string().optional(),
  expires_at: z.number().optional(),
  scopes: z.array(z.string()).optional(),
  provider_extra: z.unknown().optional(),
});
export const Credential = z.discriminatedUnion("type", [ApiKey, OAuth]);
export type Credential = z.infer<typeof Credential>;

const Provider = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "a provider name is 1 to 64 lower-case letters, digits, '.', '_' or '-', starting with a letter or digit",
  );
const ByProvider = z.object({ provider: Provider });

export const authGetToken = defineFunction({
  id: "auth::get_token",
  about: "The credential of a provider: the stored one, else the one from the environment, else null.",
  input: ByProvider,
  output: Credential.nullable(),
  effect: "none",
  parallel: true,
});
export const authSetToken = defineFunction({
  id: "auth::set_token",
  about: "Store a provider's credential in the file vault.",
  input: z.object({ provider: Provider, credential: Credential }),
  output: z.object({ ok: z.literal(true) }),
  effect: "idempotent",
});
export const authDeleteToken = defineFunction({
  id: "auth::delete_token",
  about: "Remove a provider's stored credential.",
  input: ByProvider,
  output: z.object({ ok: z.literal(true) }),
  effect: "idempotent",
});
export const authListProviders = defineFunction({
  id: "auth::list_providers",
  about: "Providers that have a stored credential.",
  input: z.object({}),
  output: z.object({ providers: z.array(z.string()) }),
  effect: "none",
  parallel: true,
});
export const authStatus = defineFunction({
  id: "auth::status",
  about: "Whether a provider has a credential, and where it comes from. Never the secret or any part of it.",
  input: ByProvider,
  output: z.object({
    configured: z.boolean(),
    source: z.enum(["stored", "environment", "runtime", "fallback"]).optional(),
    label: z.string().optional(),
    /** Without a credential: how to give one, in words for a person. */
    way: z.string().optional(),
  }),
  effect: "none",
  parallel: true,
});
