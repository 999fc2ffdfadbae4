// One HTTP exchange with a vendor, folded into an assembly. Answers how it went; throws only `Ended`.
import type { AssistantMessageEvent } from "@iii/contracts";
import type { Assembly } from "../answer/assemble.ts";
import type { Outcome } from "../answer/rule.ts";
import type { Scrubber } from "../answer/scrub.ts";
import { inWords, retryAfterMs, saidWaitMs } from "../failures.ts";
import type { Failure, HttpRequest, ProviderSettings, ProviderSpec } from "../spec.ts";
import { Folding } from "./folding.ts";
import { type Frame, frameDecoder } from "./frames.ts";
import type { Opened, Transport } from "./http.ts";
import { Ended, type Patience } from "./patience.ts";

export interface Exchange<S, C extends ProviderSettings> {
  readonly spec: ProviderSpec<S, C>;
  readonly request: HttpRequest;
  readonly transport: Transport;
  readonly patience: Patience;
  readonly assembly: Assembly;
  readonly scrubber: Scrubber;
  /** Waits while the reader is behind. */
  tell(events: readonly AssistantMessageEvent[]): Promise<void>;
  /** Wall-clock time, for `retry-after` dates. */
  now(): number;
  /** The server has taken the request: from now on it may cost something. */
  accepted(): void;
}

const LINGER_MS = 50;
const MAX_ERROR_BODY = 64 * 1024;
/** More than any model writes; a server that never ends must not fill the memory. */
const MAX_BODY = 64 * 1024 * 1024;
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

async function* bounded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const bytes of body) {
    size += bytes.length;
    if (size > MAX_BODY) throw new Error(`the provider sent more than ${MAX_BODY} bytes`);
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

/** Status and kind of a reply, before the vendor's words. */
function place({ status, headers }: Opened): string {
  const type = headers["content-type"]?.split(";")[0]?.trim();
  return type === undefined || type === "" ? String(status) : `${status} ${type}`;
}

/** A body that is no answer: an error in place of one, or a page or a text, which asking again would only bring again. */
function notAnAnswer(opened: Opened, frame: Frame & { type: "document" | "stray" }, failure: Failure): Outcome {
  if (/^\s*[{[]/.test(frame.text))
    return { type: "fail", failure: { ...failure, message: `${place(opened)}: ${inWords(failure.message)}` } };
  return fail("permanent", `${place(opened)}: not an answer: ${inWords(frame.text)}`);
}

interface Fold {
  readonly folding: Pick<Folding, "begun" | "frame" | "done">;
  readonly opened: Opened;
}

/** Folds some frames; what they come to when they are no answer at all. */
async function fold({ folding, opened }: Fold, frames: readonly Frame[], last: boolean): Promise<Outcome | undefined> {
  for (const frame of frames) {
    const first = !folding.begun;
    await folding.frame(frame, last);
    const outcome = folding.done;
    if (frame.type !== "event" && first && outcome?.type === "fail") return notAnAnswer(opened, frame, outcome.failure);
  }
  return folding.done;
}

/** Folds the body to its end. */
async function pump<S, C extends ProviderSettings>(x: Exchange<S, C>, opened: Opened, body: AsyncIterator<Uint8Array>): Promise<Outcome> {
  const folding = new Folding(x.spec, x.assembly, x.scrubber, (events) => x.tell(events));
  const decoder = frameDecoder();
  for (;;) {
    const step = await read(body, x.patience);
    if (step === "closed") return (await fold({ folding, opened }, decoder.end(), true)) ?? folding.end();
    if ("lost" in step) {
      const outcome = folding.end();
      return outcome.type === "end" ? outcome : fail("transient", step.lost);
    }
    const outcome = await fold({ folding, opened }, decoder.push(step.bytes), false);
    if (outcome === undefined) continue;
    // Reading to the very end lets the connection be used again; a server that keeps it open is not waited for.
    await x.patience.linger(body.next(), LINGER_MS);
    return outcome;
  }
}

async function refusal<S, C extends ProviderSettings>(
  x: Exchange<S, C>,
  opened: Opened,
  body: AsyncIterator<Uint8Array>,
): Promise<Outcome> {
  const text = await readText(body, x.patience);
  const failure = x.spec.classify(opened.status, opened.headers, text);
  const words = inWords(failure.message);
  const wait = failure.retry_after_ms ?? retryAfterMs(opened.headers, x.now()) ?? saidWaitMs(inWords(text));
  const asked = wait === undefined ? "" : ` (asked to wait ${Math.ceil(wait / 1_000)} s)`;
  const final = opened.headers["x-should-retry"] === "false" ? { retry: false } : {};
  const message = `${place(opened)}: ${words}${asked}`;
  return { type: "fail", failure: { ...failure, ...final, message, ...(wait === undefined ? {} : { retry_after_ms: wait }) } };
}

/** Runs one exchange. The connection is closed when this returns or throws. */
export async function attempt<S, C extends ProviderSettings>(x: Exchange<S, C>): Promise<Outcome> {
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
    if (opened.status < 200 || opened.status > 299) return await refusal(x, opened, body);
    x.accepted();
    return await pump(x, opened, body);
  } finally {
    // The signal closes a socket that a read is stuck in; leaving the generator closes any other body, and is not awaited for that reason.
    over.abort("over"); // an explicit reason: the default one is an exception with a stack
    body.return(undefined).catch(() => {});
  }
}
