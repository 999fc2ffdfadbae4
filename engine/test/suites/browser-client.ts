// A page's client as the protocol has it: text frames over a WebSocket with an Origin, no telemetry socket, no pings, the announcement
// last or (first generation) never. The published browser package is not on every registry, so its frames are made here.
import { randomUUID } from "node:crypto";
import { WebSocket } from "ws";
import type { Binding, ChannelRef, Client, Handler, Pipe, Provider, Request } from "./clients.ts";

interface Frame {
  readonly type: string;
  readonly id: string;
  readonly trigger_type: string;
  readonly function_id: string;
  readonly invocation_id?: string;
  readonly data?: unknown;
  readonly config?: unknown;
  readonly result?: unknown;
  readonly error?: { code: string; message: string };
}

type Waiting = PromiseWithResolvers<unknown>;

const asError = (error: { code: string; message: string }) => Object.assign(new Error(error.message), { code: error.code });

export class BrowserClient implements Client {
  readonly #url: string;
  readonly #origin: string;
  readonly #ws: WebSocket;
  readonly #open: Promise<unknown>;
  readonly #functions = new Map<string, Handler>();
  readonly #providers = new Map<string, Provider>();
  readonly #calls = new Map<string, Waiting>();

  constructor(url: string, origin: string, { announces }: { announces: boolean }) {
    this.#url = url;
    this.#origin = origin;
    this.#ws = new WebSocket(url, { origin });
    this.#open = new Promise((done) => this.#ws.once("open", done));
    this.#ws.on("message", (data) => void this.#take(JSON.parse(String(data)) as Frame));
    this.#ws.on("close", () => {
      for (const waiting of this.#calls.values()) waiting.reject(new Error("closed"));
    });
    if (!announces) return;
    const data = { runtime: "browser", version: "0.22.1", name: `browser:${randomUUID().slice(0, 8)}` };
    setImmediate(() => this.#send({ type: "invokefunction", function_id: "engine::workers::register", data, action: { type: "void" } }));
  }

  #send(frame: Record<string, unknown>): void {
    void this.#open.then(() => this.#ws.send(JSON.stringify(frame)));
  }

  async #take(frame: Frame): Promise<void> {
    if (frame.type === "invocationresult") {
      const waiting = this.#calls.get(frame.invocation_id ?? "");
      if (frame.error === undefined) waiting?.resolve(frame.result);
      else waiting?.reject(asError(frame.error));
    } else if (frame.type === "invokefunction") await this.#run(frame);
    else if (frame.type === "registertrigger") await this.#bind(frame);
    else if (frame.type === "unregistertrigger") await this.#providers.get(frame.trigger_type)?.unregisterTrigger(frame);
  }

  async #run({ invocation_id, function_id, data }: Frame): Promise<void> {
    const said = { type: "invocationresult", invocation_id, function_id };
    try {
      this.#send({ ...said, result: await this.#functions.get(function_id)?.(data) });
    } catch (error) {
      this.#send({ ...said, error: { code: "invocation_failed", message: String(error) } });
    }
  }

  async #bind(frame: Frame): Promise<void> {
    const { id, trigger_type, function_id } = frame;
    const said = { type: "triggerregistrationresult", id, trigger_type, function_id };
    try {
      await this.#providers.get(trigger_type)?.registerTrigger(frame);
      this.#send(said);
    } catch (error) {
      this.#send({ ...said, error: { code: "trigger_registration_failed", message: String(error) } });
    }
  }

  registerFunction(id: string, handler: Handler): Binding {
    this.#functions.set(id, handler);
    this.#send({ type: "registerfunction", message_type: "registerfunction", id });
    return { unregister: () => this.#send({ type: "unregisterfunction", id }) };
  }

  registerTrigger({ type, function_id, config }: { type: string; function_id: string; config: unknown }): Binding {
    const id = randomUUID();
    this.#send({ type: "registertrigger", message_type: "registertrigger", id, trigger_type: type, function_id, config });
    return { unregister: () => this.#send({ type: "unregistertrigger", message_type: "unregistertrigger", id }) };
  }

  registerTriggerType(type: { id: string; description: string }, provider: Provider): void {
    this.#providers.set(type.id, provider);
    this.#send({ type: "registertriggertype", ...type });
  }

  async trigger<T>({ function_id, payload, action }: Request): Promise<T> {
    const invocation_id = randomUUID();
    const waiting: Waiting = Promise.withResolvers();
    const call = { type: "invokefunction", function_id, data: payload, action };
    if (action?.type === "void") {
      this.#send(call);
      return undefined as T;
    }
    this.#calls.set(invocation_id, waiting);
    this.#send({ ...call, invocation_id });
    return (await waiting.promise) as T;
  }

  async openChannel(): Promise<Pipe> {
    const { writer, reader } = await this.trigger<{ writer: ChannelRef; reader: ChannelRef }>({
      function_id: "engine::channels::create",
      payload: {},
    });
    const texts: string[] = [];
    const bytes: Buffer[] = [];
    const into = this.#end(writer);
    const out = this.#end(reader);
    out.on("message", (data: Buffer, binary: boolean) => (binary ? bytes.push(data) : texts.push(String(data))));
    const ended = new Promise((done) => out.once("close", done));
    await new Promise((done) => into.once("open", done));
    return {
      texts,
      sendText: (text) => into.send(text),
      sendBytes: async (data) => into.send(data),
      close: () => into.close(1000, "channel_close"),
      readAll: () => ended.then(() => Buffer.concat(bytes)),
    };
  }

  #end({ channel_id, access_key, direction }: ChannelRef): WebSocket {
    return new WebSocket(`${this.#url}/ws/channels/${channel_id}?key=${access_key}&dir=${direction}`, { origin: this.#origin });
  }

  async shutdown(): Promise<void> {
    this.#ws.close(1000);
  }
}
