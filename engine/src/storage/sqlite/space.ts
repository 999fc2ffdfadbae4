// Space on the store's disk, and the reserve: a file that is given up so that turns can still end when the disk is full.
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";

const MB = 1_048_576;
const RESERVE = 16 * MB;
/** Less than this, and the reserve is given up. */
const LOW = 32 * MB;
/** So much, and there is space again: enough to fill the reserve without being low at once. */
const ENOUGH = 64 * MB;

/** Bytes free to this process; a file system that does not say has enough. */
function freeBytes(folder: string): number {
  const { blocks, bavail, bsize } = statfsSync(folder);
  return blocks === 0 ? ENOUGH : bavail * bsize;
}

export class Space {
  full = false;
  readonly #folder: string;
  readonly #reserve: string | undefined;

  /** Without `reserve`, another store on this folder keeps it. */
  constructor(folder: string, reserve: boolean) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#folder = folder;
    this.#reserve = reserve ? join(folder, "reserve") : undefined;
  }

  /** Before each transaction: cheap. */
  look(): boolean {
    const free = freeBytes(this.#folder);
    if (free < LOW) this.exhausted();
    else if (free >= ENOUGH) this.full = false;
    return this.full;
  }

  /** Now and then: takes the reserve back when there is space for it. */
  refill(): void {
    this.look();
    if (this.#reserve === undefined || this.full || isFilled(this.#reserve) || freeBytes(this.#folder) < ENOUGH) return;
    try {
      fill(this.#reserve);
    } catch {
      // Somebody else was quicker to take the space.
      this.exhausted();
    }
  }

  /** The disk has refused a write, or will soon. */
  exhausted(): void {
    this.full = true;
    if (this.#reserve !== undefined) rmSync(this.#reserve, { force: true });
  }
}

const isFilled = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.size === RESERVE;

/** Zeros, written out: a file with holes keeps nothing back. */
function fill(path: string): void {
  const zeros = Buffer.alloc(MB);
  const file = openSync(path, "w", 0o600);
  try {
    for (let written = 0; written < RESERVE; written += MB) writeSync(file, zeros);
  } finally {
    closeSync(file);
  }
}
