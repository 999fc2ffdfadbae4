// What the code that runs now was called for: found across awaits, so that a nested call can name its parent.
import type { CallContext } from "../protocol/frames.ts";
import type { Baggage } from "./baggage.ts";
import type { SpanSink } from "./spans.ts";

/** A call that a handler of this process serves. */
export interface CallScope {
  /** The connection that the call came in on; its id means nothing on another one. */
  readonly owner: object;
  readonly invocation_id: string;
  readonly origin: CallContext["origin"] | undefined;
  readonly traceparent: string | undefined;
  readonly baggage: Baggage;
  /** What records the spans of the connection. */
  readonly spans: SpanSink | undefined;
  /** False once the handler has answered: what it left running is no longer part of the call. */
  running: boolean;
}

export interface Ambient {
  current(): CallScope | undefined;
  run<T>(scope: CallScope | undefined, body: () => T): T;
}

/** Knows nothing: where the runtime cannot follow a call across awaits (browsers). */
export const noAmbient: Ambient = { current: () => undefined, run: (_scope, body) => body() };

type AsyncHooks = typeof import("node:async_hooks");

function create(): Ambient {
  const proc = (globalThis as { process?: { getBuiltinModule?: (id: string) => unknown } }).process;
  const hooks = proc?.getBuiltinModule?.("node:async_hooks") as AsyncHooks | undefined;
  if (hooks === undefined) return noAmbient;
  const storage = new hooks.AsyncLocalStorage<CallScope | undefined>();
  return { current: () => storage.getStore(), run: (scope, body) => storage.run(scope, body) };
}

/** The process's own: one for all connections, since a handler may use any of them. */
export const processAmbient: Ambient = create();
