// Who may call what: the human-only ids, raw writes by an agent, and what a browser may never reach.
// Pure decisions over facts that the engine established itself; nothing a caller says can raise a right.
import type { ErrorBody } from "@iii/sdk";
import type { Origin } from "@iii/sdk/protocol";

export interface AccessRules {
  readonly human_only: readonly string[];
  readonly protected_scopes: readonly string[];
}

/** What decides about a call. `direct`: an agent asked for exactly this call, no tool in between. */
export interface CallFacts {
  readonly origin: Origin;
  readonly direct: boolean;
  readonly kind: "worker" | "browser" | "engine";
}

/** Writes that are a tool's own business when nested, and no business of the model itself. */
const RAW_WRITES = new Set([
  "state::set",
  "state::update",
  "state::delete",
  "state::transact",
  "stream::set",
  "stream::update",
  "stream::delete",
  "stream::send",
  "publish",
  "iii::durable::publish",
  "engine::register_trigger",
  "engine::unregister_trigger",
  "engine::workers::register",
]);

/** Patterns with `*` for any run of characters; one with `!` in front takes ids out again, wherever it stands. */
export function compilePatterns(patterns: readonly string[]): (id: string) => boolean {
  const toRegExp = (pattern: string) =>
    new RegExp(
      `^${pattern
        .split("*")
        .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"))
        .join("[^]*")}$`,
    );
  const listed = patterns.filter((pattern) => !pattern.startsWith("!")).map(toRegExp);
  const spared = patterns.filter((pattern) => pattern.startsWith("!")).map((pattern) => toRegExp(pattern.slice(1)));
  const known = new Map<string, boolean>();
  return (id) => {
    const cached = known.get(id);
    if (cached !== undefined) return cached;
    const verdict = listed.some((rule) => rule.test(id)) && !spared.some((rule) => rule.test(id));
    if (known.size < 10_000) known.set(id, verdict);
    return verdict;
  };
}

export class Access {
  readonly #humanOnly: (id: string) => boolean;
  readonly #protected: (scope: string) => boolean;

  constructor(rules: AccessRules) {
    this.#humanOnly = compilePatterns(rules.human_only);
    this.#protected = compilePatterns(rules.protected_scopes);
  }

  /** Decides by the id alone, before it is known whether anyone serves it. */
  refuseCall(function_id: string, facts: CallFacts): ErrorBody | undefined {
    if (facts.kind === "browser" && function_id.startsWith("auth::")) {
      return forbidden(`'${function_id}' cannot be called from a browser`);
    }
    if (facts.origin !== "agent") return undefined;
    if (this.#humanOnly(function_id)) return forbidden(`'${function_id}' is for humans; a call made for an agent may not reach it`);
    if (facts.direct && RAW_WRITES.has(function_id)) {
      return forbidden(`'${function_id}' may not be called by an agent itself, only by a tool on its own data`);
    }
    return undefined;
  }

  /** Decides about a binding: the function it would have called later, those that its config names, and what it would watch. */
  refuseBinding({ trigger_type, function_id, config }: WantedBinding, facts: CallFacts): ErrorBody | undefined {
    // What a trigger sets off later does not carry the mark of who bound it: the agent's own limits hold for it.
    const refusal = this.#firstRefusal([function_id, ...idsIn(config)], { ...facts, direct: true });
    if (refusal !== undefined || facts.origin !== "agent") return refusal;
    if (textOf(config, "durable").length > 0) return forbidden("a durable consumer outlives the call; none is made for an agent");
    const watched = [...textOf(config, "scope"), ...textOf(config, "stream_name")];
    if (trigger_type === "state" && watched.length === 0) return forbidden("a call made for an agent may watch one scope, not all of them");
    const owned = watched.find((name) => this.#protected(name));
    return owned === undefined ? undefined : forbidden(`'${owned}' is watched by its owners only, never for an agent`);
  }

  #firstRefusal(ids: readonly string[], facts: CallFacts): ErrorBody | undefined {
    for (const id of ids) {
      const refusal = this.refuseCall(id, facts);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Decides about a built-in's input: what it would write, and which functions it would have called later. */
  refuseInput(function_id: string, input: unknown, facts: CallFacts): ErrorBody | undefined {
    if (facts.origin !== "agent" && facts.kind !== "browser") return undefined;
    if (typeof input !== "object" || input === null) return undefined;
    if (function_id === "engine::register_trigger") return this.refuseBinding(wantedBinding(input), facts);
    const refusal = this.#firstRefusal(laterCalls(function_id, input), facts);
    if (refusal !== undefined) return refusal;
    if (facts.origin !== "agent") return undefined;
    const scope = written(function_id, input).find((name) => this.#protected(name));
    return scope === undefined ? undefined : forbidden(`scope '${scope}' is written by its owners only, never for an agent`);
  }
}

export interface WantedBinding {
  readonly trigger_type: string;
  readonly function_id: string;
  readonly config: unknown;
}

function wantedBinding(input: object): WantedBinding {
  const [trigger_type = ""] = textOf(input, "trigger_type");
  const [function_id = ""] = textOf(input, "function_id");
  return { trigger_type, function_id, config: "config" in input ? input.config : undefined };
}

function forbidden(message: string): ErrorBody {
  return { code: "FORBIDDEN", message };
}

function textOf(value: unknown, key: string): string[] {
  const found = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  return typeof found === "string" ? [found] : [];
}

function listOf(value: object, key: string): unknown[] {
  const found = (value as Record<string, unknown>)[key];
  return Array.isArray(found) ? found : [];
}

/** Functions that a trigger's config names beside the one it is bound to: conditions, middleware. Any trigger type may have its own. */
function idsIn(config: unknown): string[] {
  if (typeof config !== "object" || config === null) return [];
  const values = Object.entries(config).flatMap(([key, value]) => (/function_ids?$/.test(key) ? [value].flat() : []));
  return values.filter((value) => typeof value === "string");
}

/** Functions that run later because of this call. */
function laterCalls(function_id: string, input: object): string[] {
  if (function_id === "engine::queue::enqueue") return textOf(input, "function_id");
  if (function_id === "state::transact") return listOf(input, "enqueue").flatMap((row) => textOf(row, "function_id"));
  return [];
}

/** Scopes and streams that this call would change. */
function written(function_id: string, input: object): string[] {
  if (function_id === "state::transact") {
    const scopes = listOf(input, "writes").flatMap((row) => textOf(row, "scope"));
    const streams = [...listOf(input, "events"), ...listOf(input, "drops")].flatMap((row) => textOf(row, "stream_name"));
    return [...scopes, ...streams];
  }
  return RAW_WRITES.has(function_id) ? [...textOf(input, "scope"), ...textOf(input, "stream_name")] : [];
}
