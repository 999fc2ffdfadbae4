// Where the hashes of tokens are kept that outlive the engine.

export interface KeptToken {
  /** SHA-256, hex. */
  readonly hash: string;
  readonly kind: "operator" | "entry";
  readonly name: string;
}

export interface TokenStore {
  /** @throws BusError when what is there cannot be read: keys are never forgotten in silence. */
  read(): readonly KeptToken[];
  /** Resolves once the list is on disk. */
  write(tokens: readonly KeptToken[]): Promise<void>;
}
