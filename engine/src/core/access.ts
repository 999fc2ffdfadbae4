// Who may claim, call, write and bind what. Pure decisions over facts that the engine established itself, by one table.
// Nothing that a caller says can raise a right, and what is not known gives none.
import { compileGlobs, type ErrorBody } from "@iii/sdk";
import type { Origin, Principal } from "@iii/sdk/protocol";
import { ACCESS, type AccessTable, type OwnerRow } from "./access-table.ts";
import { bindingOf, isRawWrite, laterCalls, laterQueues, readNames, textOf, type WantedBinding, writtenNames } from "./inputs.ts";
import { type EntryRights, nameOf, type Rights, rightsOf } from "./rights.ts";

/** What decides about a call. `direct`: an agent asked for exactly this call, no tool in between. */
export interface CallFacts {
  readonly origin: Origin;
  readonly direct: boolean;
  readonly kind: "worker" | "browser" | "engine";
  /** Who asks. */
  readonly principal: Principal;
  /** Who bound the trigger that makes the call: its right to do so was checked when it bound it. */
  readonly by?: Principal | undefined;
  /** The session that the agent's mark carries. */
  readonly session?: string | undefined;
}

export interface AccessOptions {
  /** More rows; nothing takes rows away. */
  readonly add?: Partial<AccessTable>;
  /** The entries of config.yaml, read at each decision. */
  readonly entries?: ReadonlyMap<string, EntryRights>;
}

type Owned = (name: string) => readonly string[] | undefined;

/** The shipped list and the added one, each with its own exceptions. */
function both(shipped: readonly string[], added: readonly string[] = []): (id: string) => boolean {
  const first = compileGlobs(shipped);
  const second = compileGlobs(added.filter((pattern) => !pattern.startsWith("!")));
  return (id) => first(id) || second(id);
}

function ownersOf(rows: readonly OwnerRow[]): Owned {
  const compiled = rows.map(({ name, owner }) => ({ matches: compileGlobs([name]), owner }));
  return (name) => compiled.find(({ matches }) => matches(name))?.owner;
}

/** Whether an id is refused to every call made for an agent, whatever a permissions file says. */
export const isClosedToAgents: (function_id: string) => boolean = compileGlobs(ACCESS.closed_to_agents);

export class Access {
  readonly #claims: (id: string) => boolean;
  readonly #decides: (id: string) => boolean;
  readonly #closed: (id: string) => boolean;
  readonly #sessionReads: (id: string) => boolean;
  readonly #browserAuth = compileGlobs(ACCESS.browser_auth);
  readonly #dispatched = compileGlobs(ACCESS.dispatched);
  readonly #scopeOwner: Owned;
  readonly #queueOwner: Owned;
  readonly #entries: ReadonlyMap<string, EntryRights>;

  constructor({ add = {}, entries = new Map() }: AccessOptions = {}) {
    this.#claims = both(ACCESS.claims, add.claims);
    this.#decides = both(ACCESS.decides, add.decides);
    this.#closed = both(ACCESS.closed_to_agents, add.closed_to_agents);
    this.#sessionReads = both(ACCESS.session_reads, add.session_reads);
    this.#scopeOwner = ownersOf([...ACCESS.scopes, ...(add.scopes ?? [])]);
    this.#queueOwner = ownersOf([...ACCESS.queues, ...(add.queues ?? [])]);
    this.#entries = entries;
  }

  #rights(who: Principal): Rights | undefined {
    return who.kind === "entry" ? rightsOf(this.#entries.get(who.name)) : undefined;
  }

  /** An entry that provides a protected id, and so owns what hangs on it: the mark of calls that it runs is not its own. */
  isControlPlane(who: Principal): boolean {
    const rights = this.#rights(who);
    if (rights === undefined) return false;
    return rights.control ?? rights.patterns.some((pattern) => this.#claims(pattern.replaceAll("*", "x")));
  }

  /** Whether an entry may say for which session a call is made: the one that runs the turns. */
  namesSessions(who: Principal): boolean {
    return who.kind === "operator" || this.#rights(who)?.provides("turn::step") === true;
  }

  /** Decides about a function or trigger type that a connection registers. */
  refuseClaim(id: string, who: Principal, kind: CallFacts["kind"]): ErrorBody | undefined {
    if (!this.#isProtected(id)) return undefined;
    if (kind === "browser") return forbidden(`'${id}' is protected: a browser registers nothing protected`);
    if (this.#rights(who)?.provides(id) === true || this.#ownsStreamOf(id, who)) return undefined;
    return forbidden(`'${id}' is registered by an entry of config.yaml that provides it, not by ${nameOf(who)}`);
  }

  #isProtected(id: string): boolean {
    if (this.#claims(id)) return true;
    const stream = streamOperation(id);
    if (stream !== undefined) return this.#scopeOwner(stream) !== undefined;
    // A provider's name is taken while an entry provides it.
    return id.startsWith("provider::") && [...this.#entries.values()].some((entry) => rightsOf(entry)?.provides(id) === true);
  }

  #ownsStreamOf(id: string, who: Principal): boolean {
    const stream = streamOperation(id);
    return stream !== undefined && who.kind === "entry" && this.#owns(this.#scopeOwner(stream), who);
  }

  #owns(owners: readonly string[] | undefined, who: Principal): boolean {
    if (owners === undefined || who.kind === "operator") return true;
    const rights = this.#rights(who);
    return rights !== undefined && owners.some((id) => rights.provides(id));
  }

  /** Decides by the id alone, before it is known whether anyone serves it. `read` gives the payload where the rule needs it. */
  refuseCall(function_id: string, facts: CallFacts, read: () => unknown = () => undefined): ErrorBody | undefined {
    return (
      this.#refuseDispatched(function_id, facts) ??
      this.#refuseBrowser(function_id, facts) ??
      this.#refuseAgent(function_id, facts, read) ??
      this.#refuseDecider(function_id, facts.by ?? facts.principal) ??
      this.#refuseKey(function_id, facts, read)
    );
  }

  #refuseDispatched(function_id: string, { origin, direct, principal }: CallFacts): ErrorBody | undefined {
    if (!this.#dispatched(function_id)) return undefined;
    if (origin === "agent" && direct && this.#rights(principal)?.provides(function_id) === true) return undefined;
    return forbidden(`'${function_id}' is reached by the dispatch of its own worker for an agent, and by nobody else`);
  }

  #refuseBrowser(function_id: string, { kind }: CallFacts): ErrorBody | undefined {
    if (kind !== "browser" || !function_id.startsWith("auth::") || this.#browserAuth(function_id)) return undefined;
    return forbidden(`'${function_id}' cannot be called from a browser`);
  }

  #refuseAgent(function_id: string, { origin, direct, session }: CallFacts, read: () => unknown): ErrorBody | undefined {
    if (origin !== "agent") return undefined;
    if (this.#closed(function_id)) return forbidden(`'${function_id}' is for humans; a call made for an agent may not reach it`);
    if (direct && isRawWrite(function_id)) {
      return forbidden(`'${function_id}' may not be called by an agent itself, only by a tool on its own data`);
    }
    if (!this.#sessionReads(function_id)) return undefined;
    const [named] = textOf(read(), "session_id");
    if (session !== undefined && named === session) return undefined;
    return forbidden(`'${function_id}' is for humans unless it names the agent's own session; a call made for an agent may read no other`);
  }

  #refuseDecider(function_id: string, who: Principal): ErrorBody | undefined {
    const stream = streamOperation(function_id);
    if (stream !== undefined && !this.#owns(this.#scopeOwner(stream), who)) return notOwner(stream, who);
    if (!this.#decides(function_id) || who.kind === "operator") return undefined;
    const rights = this.#rights(who);
    if (rights?.calls(function_id) === true || rights?.provides(function_id) === true) return undefined;
    return forbidden(`'${function_id}' takes the operator's key, or an entry that lists it under 'calls'; ${nameOf(who)} may not call it`);
  }

  /** A credential goes only to who provides the provider it is for. */
  #refuseKey(function_id: string, { principal, by }: CallFacts, read: () => unknown): ErrorBody | undefined {
    const who = by ?? principal;
    if (function_id !== "auth::get_token" || who.kind === "operator") return undefined;
    const [provider = ""] = textOf(read(), "provider");
    if (this.#rights(who)?.provides(`provider::${provider}::stream`) === true) return undefined;
    return forbidden(`the key of '${provider}' goes to the entry that provides 'provider::${provider}::*', not to ${nameOf(who)}`);
  }

  /** Decides about a binding: the function it would have called later, those that its config names, and what it would watch. */
  refuseBinding(wanted: WantedBinding, facts: CallFacts): ErrorBody | undefined {
    const { trigger_type, function_id, config, ids } = bindingOf(wanted);
    // What a trigger sets off later does not carry the mark of who bound it: the agent's own limits hold for it.
    const later = { ...facts, direct: true };
    return (
      this.#refuseHook(trigger_type, facts) ??
      this.#firstRefusal([function_id, ...ids], later) ??
      this.#refuseConsumer(config, facts.principal) ??
      (facts.origin === "agent" ? this.#refuseWatch(trigger_type, config) : undefined)
    );
  }

  #refuseHook(trigger_type: string, { origin, principal }: CallFacts): ErrorBody | undefined {
    if (!trigger_type.startsWith("hook::")) return undefined;
    if (origin === "agent") return forbidden(`'${trigger_type}' is bound by people and workers, never for an agent`);
    if (principal.kind === "operator" || this.#rights(principal)?.calls(trigger_type) === true) return undefined;
    return forbidden(`'${trigger_type}' is bound by an entry whose lines in config.yaml say calls: [${trigger_type}]`);
  }

  /** A durable consumer that bears an entry's name, or collects what has an owner, is its owner's. */
  #refuseConsumer(config: unknown, who: Principal): ErrorBody | undefined {
    const [durable] = textOf(config, "durable");
    if (durable === undefined || who.kind === "operator") return undefined;
    if (this.#entries.has(durable) && !(who.kind === "entry" && who.name === durable)) {
      return forbidden(`the durable consumer '${durable}' belongs to the entry of that name`);
    }
    const owned = textOf(config, "scope").find((name) => !this.#owns(this.#scopeOwner(name), who));
    return owned === undefined ? undefined : forbidden(`'${owned}' is collected by its owner only, not by ${nameOf(who)}`);
  }

  #refuseWatch(trigger_type: string, config: unknown): ErrorBody | undefined {
    if (textOf(config, "durable").length > 0) return forbidden("a durable consumer outlives the call; none is made for an agent");
    const watched = [...textOf(config, "scope"), ...textOf(config, "stream_name")];
    if (trigger_type === "state" && watched.length === 0) return forbidden("a call made for an agent may watch one scope, not all of them");
    const owned = watched.find((name) => this.#scopeOwner(name) !== undefined);
    return owned === undefined ? undefined : forbidden(`'${owned}' is watched by its owners only, never for an agent`);
  }

  #firstRefusal(ids: readonly string[], facts: CallFacts): ErrorBody | undefined {
    for (const id of ids) {
      const refusal = this.refuseCall(id, facts);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Decides about a built-in's input: what it would read or write, and which functions it would have called later. */
  refuseInput(function_id: string, input: unknown, facts: CallFacts): ErrorBody | undefined {
    if (typeof input !== "object" || input === null) return undefined;
    if (function_id === "engine::register_trigger") return this.refuseBinding(input as WantedBinding, facts);
    for (const { id, data } of laterCalls(function_id, input)) {
      const refusal = this.refuseCall(id, facts, () => data) ?? this.refuseInput(id, data, facts);
      if (refusal !== undefined) return refusal;
    }
    for (const queue of laterQueues(function_id, input)) {
      const refusal = this.#refuseQueue(queue, facts);
      if (refusal !== undefined) return refusal;
    }
    return this.#refuseWrite(writtenNames(function_id, input), facts) ?? this.#refuseRead(function_id, input, facts);
  }

  #refuseQueue(queue: string, facts: CallFacts): ErrorBody | undefined {
    const owners = this.#queueOwner(queue);
    if (owners === undefined) return undefined;
    if (facts.origin === "agent") return forbidden(`queue '${queue}' is fed by its owners only, never for an agent`);
    return this.#everyoneOwns(owners, facts) ? undefined : forbidden(`queue '${queue}' is fed by its owner only`);
  }

  #refuseWrite(names: readonly string[], facts: CallFacts): ErrorBody | undefined {
    const owned = names.filter((name) => this.#scopeOwner(name) !== undefined);
    const [first] = owned;
    if (first === undefined) return undefined;
    if (facts.origin === "agent") return forbidden(`scope '${first}' is written by its owners only, never for an agent`);
    const foreign = owned.find((name) => !this.#everyoneOwns(this.#scopeOwner(name), facts));
    return foreign === undefined ? undefined : notOwner(foreign, facts.by ?? facts.principal);
  }

  /** Who asks and, for a trigger's call, who bound it: a write takes the right of both. */
  #everyoneOwns(owners: readonly string[] | undefined, { principal, by }: CallFacts): boolean {
    return this.#owns(owners, principal) && (by === undefined || this.#owns(owners, by));
  }

  /** A tool in an agent's call reads nothing of the control plane but what its own session left for it. */
  #refuseRead(function_id: string, input: object, { origin, principal, session }: CallFacts): ErrorBody | undefined {
    if (origin !== "agent") return undefined;
    const owned = readNames(function_id, input).find((name) => name === "*" || this.#scopeOwner(name) !== undefined);
    if (owned === undefined) return undefined;
    if (owned !== "*" && principal.kind === "entry" && this.#owns(this.#scopeOwner(owned), principal)) return undefined;
    const [key = ""] = textOf(input, "key");
    if (owned === "results" && session !== undefined && key.startsWith(`${session}/`)) return undefined;
    return forbidden(`'${owned}' is read by its owners only, never for an agent`);
  }
}

/** `stream::set(agent::events)` serves an operation of that stream in place of the engine. */
function streamOperation(function_id: string): string | undefined {
  return /^stream::[a-z_]+\((.*)\)$/s.exec(function_id)?.[1];
}

function notOwner(name: string, who: Principal): ErrorBody {
  return forbidden(`'${name}' is written by its owner or with the operator's key, not by ${nameOf(who)}`);
}

function forbidden(message: string): ErrorBody {
  return { code: "FORBIDDEN", message };
}
