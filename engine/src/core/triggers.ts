// Trigger types and the bindings of functions to them. A binding without a provider waits (parked) and is delivered when one comes.
import type { BindingData, Effect } from "./effects.ts";

export interface TypeInfo {
  readonly id: string;
  readonly description: string;
  readonly trigger_request_format: unknown;
  readonly call_request_format: unknown;
}

interface Provider {
  readonly conn: string;
  readonly info: TypeInfo;
}

/** Who handles a binding now: the engine, a connection, or nobody. */
type Home = "engine" | { readonly conn: string } | undefined;

interface Entry {
  readonly binding: BindingData;
  home: Home;
}

export class Triggers {
  readonly #builtin = new Set<string>();
  readonly #providers = new Map<string, Provider[]>();
  readonly #bindings = new Map<string, Entry>();
  readonly #byFunction = new Map<string, Set<Entry>>();
  #ownerless = 0;

  /** Bindings that no connection owns, and so none takes along. */
  get ownerless(): number {
    return this.#ownerless;
  }

  addBuiltin(type: string): void {
    this.#builtin.add(type);
  }

  isBuiltin(type: string): boolean {
    return this.#builtin.has(type);
  }

  /** Whether a binding of this type would be delivered now. */
  isProvided(type: string): boolean {
    return this.#builtin.has(type) || this.#providers.has(type);
  }

  provider(type: string): Provider | undefined {
    return this.#providers.get(type)?.at(-1);
  }

  /** Makes `conn` the provider of a type and hands it every binding of that type. False: the type is built in. */
  provide(conn: string, info: TypeInfo, out: Effect[]): boolean {
    if (this.#builtin.has(info.id)) return false;
    const stack = this.#providers.get(info.id) ?? [];
    this.#providers.set(info.id, [...stack.filter((provider) => provider.conn !== conn), { conn, info }]);
    this.#rehome(info.id, out);
    return true;
  }

  /** Takes `conn` off a type: its bindings go to the provider before it, or wait. */
  unprovide(conn: string, type: string, out: Effect[]): void {
    const stack = this.#providers.get(type) ?? [];
    const served = stack.at(-1)?.conn === conn;
    const rest = stack.filter((provider) => provider.conn !== conn);
    if (rest.length === 0) this.#providers.delete(type);
    else this.#providers.set(type, rest);
    if (served) this.#rehome(type, out);
  }

  get(id: string): BindingData | undefined {
    return this.#bindings.get(id)?.binding;
  }

  /** Records a binding and hands it to whoever provides its type. One with the same id is replaced. */
  bind(binding: BindingData, out: Effect[]): void {
    this.unbind(binding.id, out);
    const entry: Entry = { binding, home: undefined };
    this.#bindings.set(binding.id, entry);
    this.#byFunction.set(binding.function_id, (this.#byFunction.get(binding.function_id) ?? new Set()).add(entry));
    if (binding.worker_id === null) this.#ownerless += 1;
    this.#deliver(entry, out);
  }

  unbind(id: string, out: Effect[]): BindingData | undefined {
    const entry = this.#bindings.get(id);
    if (entry === undefined) return undefined;
    this.drop(id);
    const { binding, home } = entry;
    if (home === "engine") out.push({ type: "unbind", binding });
    else if (home !== undefined) {
      out.push({ type: "send", conn: home.conn, from: null, head: { type: "unregistertrigger", id, trigger_type: binding.trigger_type } });
    }
    return binding;
  }

  /** Its provider refused it: it waits for the next one. */
  park(id: string): void {
    const entry = this.#bindings.get(id);
    if (entry !== undefined) entry.home = undefined;
  }

  /** Forgets a binding without telling its home, which refused it. */
  drop(id: string): void {
    const entry = this.#bindings.get(id);
    if (entry === undefined) return;
    this.#bindings.delete(id);
    const { function_id, worker_id } = entry.binding;
    if (worker_id === null) this.#ownerless -= 1;
    const others = this.#byFunction.get(function_id);
    others?.delete(entry);
    if (others?.size === 0) this.#byFunction.delete(function_id);
  }

  /** The bindings that run a function. */
  bindingsOf(function_id: string): readonly BindingData[] {
    return [...(this.#byFunction.get(function_id) ?? [])].map(({ binding }) => binding);
  }

  *bindings(): Iterable<{ binding: BindingData; active: boolean }> {
    for (const { binding, home } of this.#bindings.values()) yield { binding, active: home !== undefined };
  }

  builtinTypes(): Iterable<string> {
    return this.#builtin;
  }

  *provided(): Iterable<Provider> {
    for (const stack of this.#providers.values()) {
      const provider = stack.at(-1);
      if (provider !== undefined) yield provider;
    }
  }

  #rehome(type: string, out: Effect[]): void {
    for (const entry of this.#bindings.values()) {
      if (entry.binding.trigger_type === type) this.#deliver(entry, out);
    }
  }

  #deliver(entry: Entry, out: Effect[]): void {
    const { binding } = entry;
    if (this.#builtin.has(binding.trigger_type)) {
      entry.home = "engine";
      out.push({ type: "bind", binding });
      return;
    }
    const provider = this.provider(binding.trigger_type);
    entry.home = provider === undefined ? undefined : { conn: provider.conn };
    if (provider === undefined) return;
    const { id, trigger_type, function_id, config, metadata } = binding;
    const head = { type: "registertrigger", id, trigger_type, function_id, config, ...(metadata === undefined ? {} : { metadata }) };
    out.push({ type: "send", conn: provider.conn, from: binding.worker_id, head });
  }
}
