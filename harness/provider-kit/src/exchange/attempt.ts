// One HTTP exchange with a vendor, folded into an assembly. Answers how it went; throws only `Ended`.
import type { AssistantMessageEvent, StopReason } from "@iii/contracts";
import type { z } from "zod";
import type { Assembly } from "../answer/assemble.ts";
import { retryAfterMs } from "../failures.ts";
import type { Failure, FoldEvent, HttpRequest, ProviderSettings, ProviderSpec } from "../spec.ts";
import { sseDecoder } from "./frames.ts";
import type { Opened, Transport } from "./http.ts";
import { Ended, type Patience } from "./patience.ts";

export type Outcome = { readonly type: "end"; readonly stop: StopReason } | { readonly type: "fail"; readonly failure: Failure };

export interface Exchange<W extends z.ZodType, S, C extends ProviderSettings> {
  readonly spec: ProviderSpec<W, S, C>;
  readonly request: HttpRequest;
  readonly transport: Transport;
  readonly patience: Patience;
  readonly assembly: Assembly;
  /** Waits while the reader is behind. */
  tell(events: readonly AssistantMessageEvent[]): Promise<void>;
  /** Wall-clock time, for `retry-after` dates. */
  now(): number;
  /** Counts a vendor event that the wire schema does not know. */
  unknown(): void;
}

const LINGER_MS = 50;
const MAX_ERROR_BODY = 64 * 1024;
/** More than any model writes; a server that never ends must not fill the memory. */
const MAX_ANSWER = 64 * 1024 * 1024;
const fail = (kind: Failure["kind"], message: string): Outcome => ({ type: "fail", failure: { kind, message } });

async function readText(body: AsyncIterator<Uint8Array>, patience: Patience): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  while (text.length < MAX_ERROR_BODY) {
    const { done, value } = await patience.wait(body.next());
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  return text.slice(0, MAX_ERROR_BODY);
}

/** Feeds vendor events through the fold. `done` is set by the first `end` or `fail`; nothing after it counts. */
class Folding<W extends z.ZodType, S, C extends ProviderSettings> {
  readonly #x: Exchange<W, S, C>;
  #state: S;
  done: Outcome | undefined;

  constructor(x: Exchange<W, S, C>) {
    this.#x = x;
    this.#state = x.spec.begin();
  }

  async data(line: string): Promise<void> {
    if (this.done !== undefined) return;
    if (line === this.#x.spec.sentinel) return this.finish(true);
    const parsed = this.#x.spec.wire.safeParse(parseJson(line));
    if (!parsed.success) return this.#x.unknown();
    const [next, events] = this.#x.spec.fold(this.#state, parsed.data);
    this.#state = next;
    await this.#take(events);
  }

  async finish(sentinel: boolean): Promise<void> {
    if (this.done === undefined) await this.#take(this.#x.spec.finish?.(this.#state, sentinel) ?? []);
  }

  async #take(events: readonly FoldEvent[]): Promise<void> {
    for (const event of events) {
      if (this.done !== undefined) return;
      if (event.type === "end") this.done = { type: "end", stop: event.stop };
      else if (event.type === "fail") this.done = { type: "fail", failure: event.failure };
      else await this.#x.tell(this.#x.assembly.push(event));
    }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function* bounded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const bytes of body) {
    size += bytes.length;
    if (size > MAX_ANSWER) throw new Error(`the provider sent more than ${MAX_ANSWER} bytes`);
    yield bytes;
  }
}

type Read = { readonly bytes: Uint8Array } | "closed" | { readonly lost: string };

async function read(body: AsyncIterator<Uint8Array>, patience: Patience): Promise<Read> {
  try {
    const step = await patience.wait(body.next());
    return step.done ? "closed" : { bytes: step.value };
  } catch (thrown) {
    if (thrown instanceof Ended && thrown.by === "caller") throw thrown;
    return { lost: thrown instanceof Error ? thrown.message : "the connection was lost" };
  }
}

/** Folds the stream to its end. Answers why it was lost; undefined when it closed, or ended by its own words. */
async function pump<W extends z.ZodType, S, C extends ProviderSettings>(
  x: Exchange<W, S, C>,
  body: AsyncIterator<Uint8Array>,
  folding: Folding<W, S, C>,
): Promise<string | undefined> {
  const decoder = sseDecoder();
  while (folding.done === undefined) {
    const step = await read(body, x.patience);
    if (typeof step === "object" && "lost" in step) return step.lost;
    for (const line of step === "closed" ? decoder.end() : decoder.push(step.bytes)) await folding.data(line);
    if (step === "closed") return undefined;
  }
  // Reading to the very end lets the connection be used again; a server that keeps it open is not waited for.
  await x.patience.linger(body.next(), LINGER_MS);
  return undefined;
}

async function refusal<W extends z.ZodType, S, C extends ProviderSettings>(
  x: Exchange<W, S, C>,
  opened: Opened,
  body: AsyncIterator<Uint8Array>,
): Promise<Outcome> {
  const failure = x.spec.classify(opened.status, opened.headers, await readText(body, x.patience));
  const wait = failure.retry_after_ms ?? retryAfterMs(opened.headers, x.now());
  return { type: "fail", failure: wait === undefined ? failure : { ...failure, retry_after_ms: wait } };
}

/** Runs one exchange. The connection is closed when this returns or throws. */
export async function attempt<W extends z.ZodType, S, C extends ProviderSettings>(x: Exchange<W, S, C>): Promise<Outcome> {
  const over = new AbortController();
  let opened: Opened;
  try {
    opened = await x.patience.wait(x.transport(x.request, AbortSignal.any([x.patience.signal, over.signal])));
  } catch (thrown) {
    if (thrown instanceof Ended) throw thrown;
    return fail("transient", thrown instanceof Error ? thrown.message : "the request failed");
  }
  const body = bounded(opened.body);
  try {
    const json = opened.headers["content-type"]?.includes("application/json") ?? false;
    if (opened.status < 200 || opened.status > 299 || json) return await refusal(x, opened, body);
    const folding = new Folding(x);
    const lost = await pump(x, body, folding);
    await folding.finish(false);
    return folding.done ?? fail("transient", lost ?? "the stream was cut before its end (truncated)");
  } finally {
    // The signal closes a socket that a read is stuck in; leaving the generator closes any other body, and is not awaited for that reason.
    over.abort("over"); // a reason of our own: the default one is an exception with a stack
    body.return(undefined).catch(() => {});
  }
}
