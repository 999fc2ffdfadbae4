// What a provider is made of: three pure functions, a wire schema and its models. Types and the common settings; no behaviour.
import type { AssistantMessage, GenerateRequest, Model, StopReason, Usage } from "@iii/contracts";
import { z } from "zod";

export type ErrorKind = NonNullable<AssistantMessage["error_kind"]>;

/** Why a model call failed. `retry` overrides what the kind implies (`rate_limited` and `transient` are tried again). */
export interface Failure {
  readonly kind: ErrorKind;
  readonly message: string;
  readonly retry_after_ms?: number;
  readonly retry?: boolean;
}

/** A vendor's own name for a content block: its index, or any stable key. */
export type BlockKey = string | number;

/**
 * What a fold says happened, one level above the vendor's wire. Blocks open when they are first named. `usage` replaces the fields
 * it names, it never adds. `call.id` and `call.name` may come late or not at all. Exactly one `end` or `fail` closes the answer.
 */
export type FoldEvent =
  | { readonly type: "text" | "thinking"; readonly block: BlockKey; readonly delta: string }
  | { readonly type: "signature"; readonly block: BlockKey; readonly delta: string }
  | { readonly type: "opaque_thinking"; readonly block: BlockKey; readonly signature: unknown }
  | {
      readonly type: "call";
      readonly block: BlockKey;
      readonly id?: string | undefined;
      readonly name?: string | undefined;
      readonly delta?: string | undefined;
    }
  | { readonly type: "close"; readonly block: BlockKey }
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "end"; readonly stop: StopReason }
  | { readonly type: "fail"; readonly failure: Failure };

export interface HttpRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON, with every string made well-formed. */
  readonly body: unknown;
}

export type Headers = Readonly<Record<string, string>>;

/** Settings every provider has; a provider's own config schema extends these. */
export const ProviderSettings = z.object({
  /** The whole address of the endpoint. */
  api_url: z.url().optional(),
  default_max_tokens: z.int().positive().default(8192),
  /** How long upstream may be silent. Any byte counts as life, keep-alive comments too. */
  idle_timeout_ms: z.int().positive().default(120_000),
  total_timeout_ms: z.int().positive().default(600_000),
  max_retries: z.int().nonnegative().default(3),
  /** A vendor that asks for a longer pause than this fails the call instead. */
  max_retry_delay_ms: z.int().positive().default(60_000),
});
export type ProviderSettings = z.infer<typeof ProviderSettings>;

export const Credential = z.discriminatedUnion("type", [
  z.object({ type: z.literal("api_key"), key: z.string().min(1) }),
  z.object({ type: z.literal("oauth"), access_token: z.string().min(1) }),
]);
export type Credential = z.infer<typeof Credential>;

/** What `request` knows beside the request itself. */
export interface RequestContext<C> {
  readonly config: C;
  readonly url: string;
  readonly credential: Credential | undefined;
  readonly model: Model | undefined;
  /** The name this vendor's wire allows for a tool or function id; the kit maps it back. */
  toolName(name: string): string;
}

export interface ProviderSpec<W extends z.ZodType, S, C extends ProviderSettings> {
  /** The routing name: serves `provider::<name>::stream` and `::complete`. */
  readonly name: string;
  readonly display?: string;
  readonly config: z.ZodType<C>;
  /** One vendor event, parsed loosely. What it does not accept is counted and skipped. */
  readonly wire: W;
  readonly begin: () => S;
  readonly fold: (state: S, event: z.output<W>) => readonly [S, readonly FoldEvent[]];
  /** What the end of the stream means. `sentinel`: the vendor's closing line was seen. Without an `end` here or before, it was cut. */
  readonly finish?: (state: S, sentinel: boolean) => readonly FoldEvent[];
  /** A data line that is not JSON and closes the stream, e.g. `[DONE]`. */
  readonly sentinel?: string;
  readonly request: (request: GenerateRequest, context: RequestContext<C>) => HttpRequest;
  readonly classify: (status: number, headers: Headers, body: string) => Failure;
  readonly models: readonly Model[];
  readonly endpoint: { readonly url: string; readonly env?: string; readonly path?: string };
  /** Default `required`. */
  readonly credential?: "required" | "optional" | "none";
  /** The environment variable to name when the credential is missing. */
  readonly credential_env?: string;
}
