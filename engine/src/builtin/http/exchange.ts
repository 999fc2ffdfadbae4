// One request and the function that answers it: by what it returns, or by what it writes to the `response` channel. Decided once.
import { type BusError, type Timer, toBusError } from "@iii/sdk";
import type { Principal } from "@iii/sdk/protocol";
import type { EngineHost } from "../../ports/host.ts";
import type { HttpRequest, HttpResponse } from "./port.ts";
import { type Pieces, RequestBody } from "./request-body.ts";
import { fromError, fromReturn } from "./respond.ts";
import { ResponseBody } from "./response-body.ts";

/** What the calls for one request carry: its trace, and who sent it. A route lends nobody the right of who bound it. */
export interface Trace {
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
  readonly principal: Principal | undefined;
}

export interface ExchangeOptions {
  readonly function_id: string;
  /** Until this time the function must have begun to answer. A body that has begun may take as long as it likes. */
  readonly timeout_ms: number;
  /** Clients open their end of a channel after they have used it, on a socket of its own: how long that may take. */
  readonly grace_ms: number;
  readonly request: HttpRequest;
  readonly pieces: Pieces;
  readonly trace: Trace;
}

/** Frames that may wait in one channel: with frames of 64 KiB, a mebibyte for each direction of a request. */
const FRAMES = 16;

export class Exchange {
  readonly #host: EngineHost;
  readonly #options: ExchangeOptions;
  readonly #id: string;
  readonly #decided = Promise.withResolvers<HttpResponse>();
  readonly #over = Promise.withResolvers<BusError | undefined>();
  readonly #responseChannel;
  readonly #requestChannel;
  readonly #requestBody: RequestBody;
  readonly #responseBody: ResponseBody;
  #mode: "open" | "stream" | "done" = "open";
  #call: "running" | "returned" | "failed" = "running";
  #writer: "there" | "closed" | "lost" = "there";
  #timer: Timer | undefined;

  constructor(host: EngineHost, options: ExchangeOptions) {
    this.#host = host;
    this.#options = options;
    this.#id = host.random.uuid();
    this.#requestChannel = host.channels.open(FRAMES);
    this.#responseChannel = host.channels.open(FRAMES);
    this.#requestBody = new RequestBody(this.#requestChannel);
    this.#responseBody = new ResponseBody(this.#responseChannel, {
      begun: () => this.#begun(),
      ended: (how) => this.#writerEnded(how),
    });
  }

  /** Resolves when the answer is complete, with what cut it short if something did. */
  get over(): Promise<BusError | undefined> {
    return this.#over.promise;
  }

  /** Calls the function. Rejects with what the function threw before it began to answer. */
  run(payload: Record<string, unknown>): Promise<HttpResponse> {
    const { function_id, timeout_ms, trace, request, pieces } = this.#options;
    const refs = { request_body: this.#requestChannel.reader, response: this.#responseChannel.writer };
    // The deadline is kept here: on the call itself it would also end a body that is still streaming.
    const call = { function_id, payload: { ...payload, ...refs }, timeout_ms: 0, invocation_id: this.#id, ...trace };
    this.#timer = this.#host.clock.setTimer(() => this.#late(), timeout_ms);
    const gone = (): void => this.#gone();
    request.signal.addEventListener("abort", gone, { once: true });
    this.#host
      .invoke(call)
      .then((value) => this.#returned(value))
      .catch((thrown: unknown) => this.#failed(toBusError(thrown)));
    if (request.signal.aborted) gone();
    else void this.#requestBody.pour(pieces);
    return this.#decided.promise;
  }

  #returned(value: unknown): void {
    this.#call = "returned";
    if (this.#mode === "done") this.#timer?.cancel();
    else if (this.#mode === "stream") this.#afterLoss();
    else if (value !== null && value !== undefined) this.#decide(fromReturn(value));
    else if (this.#writer !== "there") this.#decideHead();
    else this.#awaitWriter();
  }

  #failed(error: BusError): void {
    this.#call = "failed";
    if (this.#mode === "open") this.#reject(error);
    else if (this.#mode === "stream") this.#finish("abort", error);
    else this.#timer?.cancel();
  }

  /** The function has returned nothing. Whether it answers by its channel shows once it had the time to open it. */
  #awaitWriter(): void {
    const { clock } = this.#host;
    const check = (): void => {
      if (this.#mode === "open" && !this.#responseChannel.taken("write")) this.#decide(fromReturn(undefined));
    };
    // The second timer lets the sockets be heard that had to wait while this process was busy.
    clock.setTimer(() => clock.setTimer(check, 1), this.#options.grace_ms);
  }

  #begun(): void {
    if (this.#mode !== "open") return;
    if (this.#isBodyless()) {
      this.#decideHead();
      return;
    }
    this.#mode = "stream";
    this.#timer?.cancel();
    this.#decided.resolve({ ...this.#responseBody.head, body: this.#responseBody.stream });
  }

  #isBodyless(): boolean {
    const { status } = this.#responseBody.head;
    return this.#options.request.method === "HEAD" || status === 204 || status === 304;
  }

  #writerEnded(how: "closed" | "lost"): void {
    this.#writer = how;
    if (this.#mode === "stream") {
      if (how === "closed") this.#finish("end");
      else this.#afterLoss();
    } else if (this.#mode === "open" && (this.#call === "returned" || (how === "closed" && this.#responseBody.headSet))) {
      this.#decideHead();
    }
  }

  /**
   * Clients may drop their end right after the last piece, before their close has left. So a lost writer is a complete body when
   * its function has returned and its worker is still there, a moment later.
   */
  #afterLoss(): void {
    if (this.#writer !== "lost" || this.#call !== "returned") return;
    const check = (): void => this.#finish(this.#host.isServed(this.#options.function_id) ? "end" : "abort");
    this.#host.clock.setTimer(check, this.#options.grace_ms / 4);
  }

  #late(): void {
    if (this.#call === "running") this.#host.cancel(this.#id);
    if (this.#mode === "open") this.#decide({ status: 504, headers: [] });
  }

  #gone(): void {
    if (this.#call === "running") this.#host.cancel(this.#id);
    if (this.#mode === "open") this.#decide({ status: 499, headers: [] });
    else this.#finish("abort");
  }

  #decideHead(): void {
    this.#decide(this.#responseBody.head);
  }

  #decide(response: HttpResponse): void {
    this.#decided.resolve(response);
    this.#close(undefined);
  }

  #reject(error: BusError): void {
    this.#decided.reject(error);
    this.#close(error);
  }

  #finish(how: "end" | "abort", error?: BusError): void {
    if (this.#mode !== "stream") return;
    this.#responseBody.finish(how);
    this.#close(error);
  }

  #close(error: BusError | undefined): void {
    this.#mode = "done";
    this.#timer?.cancel();
    // A function that goes on after its answer has the same time again.
    if (this.#call === "running") this.#timer = this.#host.clock.setTimer(() => this.#late(), this.#options.timeout_ms);
    this.#requestBody.end();
    this.#responseChannel.end();
    this.#over.resolve(error);
  }
}

/** What a client sees of a function that failed before it began to answer. */
export function failed(host: EngineHost, thrown: unknown, route: string): HttpResponse {
  const error = toBusError(thrown);
  const errorId = host.random.uuid();
  host.log.warn({ code: error.code, error_id: errorId, route }, `http request failed: ${error.message}`);
  return fromError(error, errorId);
}
