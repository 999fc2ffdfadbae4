// Tokens name a principal and give no rights by themselves. Only their hashes are kept: in memory, and those that outlive the engine in a file.
import { createHash } from "node:crypto";
import type { Random } from "@iii/sdk";
import type { Principal } from "@iii/sdk/protocol";
import type { KeptToken, TokenStore } from "../ports/tokens.ts";

const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");

export class Tokens {
  readonly #known = new Map<string, Principal>();
  readonly #random: Random;
  readonly #store: TokenStore | undefined;
  #kept: readonly KeptToken[] = [];

  constructor(random: Random, store?: TokenStore) {
    this.#random = random;
    this.#store = store;
    this.#kept = store?.read() ?? [];
    for (const { hash, kind, name } of this.#kept) this.#known.set(hash, { kind, name });
  }

  /** Makes a token. With `keep` it is still known after the engine has ended. */
  async issue(principal: Principal & { kind: "operator" | "entry" }, keep = false): Promise<string> {
    const token = `${this.#random.uuid()}${this.#random.uuid()}`.replaceAll("-", "");
    if (keep) {
      const kept = [...this.#kept, { hash: hashOf(token), ...principal }];
      // Known only once it is kept: a token that a restart would forget is not given out.
      await this.#store?.write(kept);
      this.#kept = kept;
    }
    this.add(token, principal);
    return token;
  }

  /** A token that somebody else keeps. */
  add(token: string, principal: Principal): void {
    this.#known.set(hashOf(token), principal);
  }

  revoke(token: string): void {
    this.#known.delete(hashOf(token));
  }

  find(token: string): Principal | undefined {
    return this.#known.get(hashOf(token));
  }
}
