// Who serves which function id: the newest live owner, and behind it the ones it displaced.

export interface FunctionInfo {
  readonly id: string;
  readonly description: string | undefined;
  readonly metadata: unknown;
  readonly request_format: unknown;
  readonly response_format: unknown;
}

export interface Owner {
  readonly conn: string;
  readonly info: FunctionInfo;
}

/** `taken`: the id is built in; the claim is remembered for the catalogue and serves nothing. */
export type Claim = "added" | "moved" | "replaced" | "taken";

export class Functions {
  readonly #builtin = new Set<string>();
  readonly #owners = new Map<string, Owner[]>();
  readonly #refused = new Map<string, Set<string>>();

  addBuiltin(id: string): void {
    this.#builtin.add(id);
  }

  isBuiltin(id: string): boolean {
    return this.#builtin.has(id);
  }

  /** Makes `conn` the owner that serves. `moved`: another connection served it until now. */
  claim(conn: string, info: FunctionInfo): Claim {
    if (this.#builtin.has(info.id)) {
      const refused = this.#refused.get(info.id) ?? new Set();
      this.#refused.set(info.id, refused.add(conn));
      return "taken";
    }
    const stack = this.#owners.get(info.id) ?? [];
    const before = stack.at(-1)?.conn;
    this.#owners.set(info.id, [...stack.filter((owner) => owner.conn !== conn), { conn, info }]);
    if (before === undefined) return "added";
    return before === conn ? "replaced" : "moved";
  }

  /** Takes `conn` off the id. `removed`: nobody serves it now; `moved`: an older owner does again. */
  release(conn: string, id: string): "removed" | "moved" | "unchanged" {
    this.#refused.get(id)?.delete(conn);
    const stack = this.#owners.get(id);
    if (stack === undefined) return "unchanged";
    const served = stack.at(-1)?.conn === conn;
    const rest = stack.filter((owner) => owner.conn !== conn);
    if (rest.length === 0) this.#owners.delete(id);
    else this.#owners.set(id, rest);
    if (!served) return "unchanged";
    return rest.length === 0 ? "removed" : "moved";
  }

  /** The live owner that serves the id; undefined for built-in and unknown ids. */
  serving(id: string): Owner | undefined {
    return this.#owners.get(id)?.at(-1);
  }

  has(id: string): boolean {
    return this.#builtin.has(id) || this.#owners.has(id);
  }

  /** Connections that registered the id and do not serve it. */
  others(id: string): readonly string[] {
    const waiting =
      this.#owners
        .get(id)
        ?.slice(0, -1)
        .map((owner) => owner.conn) ?? [];
    return [...waiting, ...(this.#refused.get(id) ?? [])];
  }

  builtinIds(): Iterable<string> {
    return this.#builtin;
  }

  /** The serving owner of every id that a worker serves. */
  *served(): Iterable<Owner> {
    for (const stack of this.#owners.values()) {
      const owner = stack.at(-1);
      if (owner !== undefined) yield owner;
    }
  }
}
