// Finds the end of large objects and arrays with vector instructions, beside the plain scan, which judges whatever is not in order.
// Only for runtimes that can decode base64 and run WebAssembly with vectors; elsewhere the plain scan does everything.
import { skipValue } from "./scan.ts";
import { VECTOR_WASM } from "./vector-wasm.ts";

interface Vector {
  readonly memory: { readonly buffer: ArrayBuffer };
  reset(): void;
  /** The position after the container, 0 when it goes on, -1 for what the plain scan must judge. */
  scan(size: number): number;
}

interface Wasm {
  validate(bytes: Uint8Array): boolean;
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { readonly exports: unknown };
}

const CHUNK = 65_536;
/** The scan reads so many bytes at a time. */
const STEP = 64;
/** Shorter frames are sooner scanned than copied. */
const LARGE = 1_024;
const SPACE = 0x20;

function load(): Vector | undefined {
  const { WebAssembly: wasm } = globalThis as { WebAssembly?: Wasm };
  const bytes = Uint8Array.from(atob(VECTOR_WASM), (char) => char.charCodeAt(0));
  return wasm?.validate(bytes) === true ? (new wasm.Instance(new wasm.Module(bytes)).exports as Vector) : undefined;
}

const vector = load();
const chunk = new Uint8Array(vector?.memory.buffer ?? new ArrayBuffer(0));

/** The position after the object or array that opens at `at`; undefined when the plain scan must find it, or say what is wrong. */
export function skipByVector(bytes: Uint8Array, at: number): number | undefined {
  if (vector === undefined) return undefined;
  vector.reset();
  for (let from = at; from < bytes.length; from += CHUNK) {
    const part = bytes.subarray(from, from + CHUNK);
    chunk.set(part);
    const size = Math.ceil(part.length / STEP) * STEP;
    chunk.fill(SPACE, part.length, size);
    const end = vector.scan(size);
    if (end > 0) return from + end;
    if (end < 0) return undefined;
  }
  return undefined;
}

const isOpener = (byte: number | undefined): boolean => byte === 0x7b || byte === 0x5b;

/** As `skipValue`. */
export function skipLarge(bytes: Uint8Array, at: number): number {
  const end = bytes.length - at < LARGE || !isOpener(bytes[at]) ? undefined : skipByVector(bytes, at);
  return end ?? skipValue(bytes, at);
}
