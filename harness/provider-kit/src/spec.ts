// What a provider is made of: pure functions, end words and models. Types and the common settings; no behaviour.
import { type AssistantMessage, Model, type Usage } from "@iii/contracts";
import type { Credential } from "@iii/worker-auth-credentials/contract";
import { z } from "zod";
import type { Words } from "./answer/rule.ts";
import type { HealedRequest, Takes } from "./request/doctor.ts";

export type ErrorKind = NonNullable<AssistantMessage["error_kind"]>;

/** Why a model call failed. `retry` overrides what the kind implies (`rate_limited` and `transient` are tried again). */
export interface Failure {
  readonly kind: ErrorKind;
  /** The vendor's words, or ours. */
  readonly message: string;
  readonly retry_after_ms?: number;
  readonly retry?: boolean;
}

/** A vendor's own name for a content block: its index, or any stable key. */
export type BlockKey = string | number;

/**
 * What a fold says happened, one level above the vendor's wire; `answer/rule.ts` decides what an answer made of it is worth.
 * - `open` announces a block on wires that do; elsewhere blocks open when they are first named. `skipped`: harmless, but not for us.
 * - `text`, `thinking`, `signature`, `call`: deltas. `call.id` and `call.name` may come late. `problem`: why the arguments cannot be used.
 * - `vendor`: what the server wants back with the message. `usage` replaces the fields it names, it never adds.
 * - `end`: the vendor's end word; more may follow. `closing`: nothing more follows.
 * - `unknown`: something that was not understood. `fail`: the vendor says that it failed.
 */
export type FoldEvent =
  | { readonly type: "begin" }
  | {
      readonly type: "open";
      readonly block: BlockKey;
      readonly kind: "text" | "thinking" | "call" | "skipped";
      readonly id?: string | undefined;
      readonly name?: string | undefined;
    }
  | { readonly type: "text" | "thinking"; readonly block: BlockKey; readonly delta: string }
  | { readonly type: "signature"; readonly block: BlockKey; readonly delta: string }
  | { readonly type: "opaque_thinking"; readonly block: BlockKey; readonly signature: unknown }
  | {
      readonly type: "call";
      readonly block: BlockKey;
      readonly id?: string | undefined;
      readonly name?: string | undefined;
      readonly delta?: string | undefined;
      readonly extra?: unknown;
      readonly problem?: string | undefined;
    }
  | { readonly type: "close"; readonly block: BlockKey }
  | { readonly type: "vendor"; readonly reasoning?: string; readonly fields?: Readonly<Record<string, unknown>> }
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "end"; readonly word: string }
  | { readonly type: "closing" }
  | { readonly type: "unknown"; readonly what: string; readonly kind?: ErrorKind }
  | { readonly type: "fail"; readonly failure: Failure };

/** One JSON value of a vendor's stream, with the name of its event ("" when it has none), or a whole JSON body. */
export interface Incoming {
  readonly name: string;
  readonly value: unknown;
}

export interface HttpRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON, with every string made well-formed. */
  readonly body: unknown;
}

export type { Credential } from "@iii/worker-auth-credentials/contract";
export type Headers = Readonly<Record<string, string>>;

/** A model as a provider's own config names it: the catalogue's row, of which only `id` and `context_window` must be said. */
const OwnModel = Model.partial().required({ id: true, context_window: true });

/** Settings every provider has; a provider's own config schema extends these. */
export const ProviderSettings = z.object({
  /** Where the server is: its base address, with its own version and query where it has them, or the whole address of the endpoint. */
  api_url: z.url().optional(),
  /** What stands behind `api_url`. Default: found out of the address; "" when `api_url` is whole whatever it looks like. */
  api_path: z.string().optional(),
  /** Sent with every request, over the headers that are sent anyway. */
  headers: z.record(z.string(), z.string()).default({}),
  /** The header in which the key goes, where it is not the vendor's own: `api-key`, or `authorization` (as a bearer). */
  key_header: z.string().min(1).optional(),
  /** Whether a key is needed. `none` does not even ask for one. */
  credential: z.enum(["required", "optional", "none"]).optional(),
  /** Models that the server has beside the known ones. */
  models: z.array(OwnModel).default([]),
  /** Fields of the request body that the server does not take. `messages.name` leaves a field out of every message. */
  leave_out: z.array(z.string()).default([]),
  /** Fields of the request body that the server calls otherwise: `{max_completion_tokens: max_tokens}`. */
  rename: z.record(z.string(), z.string()).default({}),
  /** Fields that are added to the request body, over those that are there. */
  body: z.record(z.string(), z.unknown()).default({}),
  default_max_tokens: z.int().positive().default(8192),
  /** How long upstream may be silent. Any byte counts as life, keep-alive comments too. */
  idle_timeout_ms: z.int().positive().default(120_000),
  /** The most that one call may take, its retries included. Above any answer whose tokens flow: what counts is silence. */
  total_timeout_ms: z.int().positive().default(3_600_000),
  max_retries: z.int().nonnegative().default(3),
  /** A vendor that asks for a longer pause than this fails the call instead. */
  max_retry_delay_ms: z.int().positive().default(60_000),
});
export type ProviderSettings = z.infer<typeof ProviderSettings>;

/** What `request` knows beside the request itself. */
export interface RequestContext<C> {
  readonly config: C;
  readonly url: string;
  readonly credential: Credential | undefined;
  readonly model: Model | undefined;
  /** The name this vendor's wire allows for a tool or function id; the kit maps it back. */
  toolName(name: string): string;
}

/** The part of a provider that a family of servers shares. */
export interface Protocol<S, C extends ProviderSettings> {
  readonly begin: () => S;
  /** Reads one value field by field: what is missing is missing, what is there in a form that is not known is `unknown`. Never throws. */
  readonly fold: (state: S, incoming: Incoming) => readonly [S, readonly FoldEvent[]];
  readonly words: Words;
  /** The request's conversation is healed already (`request/doctor.ts`). */
  readonly request: (request: HealedRequest, context: RequestContext<C>) => HttpRequest;
  readonly classify: (status: number, headers: Headers, body: string) => Failure;
  readonly takes: Takes;
}

export interface ProviderSpec<S, C extends ProviderSettings> extends Protocol<S, C> {
  /** The routing name: serves `provider::<name>::stream` and `::complete`. */
  readonly name: string;
  readonly display?: string;
  readonly config: z.ZodType<C>;
  readonly models: readonly Model[];
  readonly endpoint: { readonly url: string; readonly env?: string; readonly path?: string };
  /** Default `required`; the config's `credential` wins. */
  readonly credential?: "required" | "optional" | "none";
  /** The environment variable to name when the credential is missing. */
  readonly credential_env?: string;
}
