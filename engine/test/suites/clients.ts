// Every generation of clients behind one door, for tests that ask of each what the official suites ask.
import type { Writable } from "node:stream";
import { registerWorker } from "iii-sdk";
import { createChannel } from "iii-sdk/helpers";
import { registerWorker as registerWorkerOf011 } from "iii-sdk-0-11";
import { onTestFinished } from "vitest";
import { httpBench } from "../http/bench.ts";
import { BrowserClient } from "./browser-client.ts";

// biome-ignore lint/suspicious/noExplicitAny: handlers take whatever their test sends, as in the published clients.
export type Handler = (data: any) => Promise<unknown>;

export interface Binding {
  unregister(): void;
}

export interface Bound {
  readonly id: string;
  readonly function_id: string;
  readonly config?: unknown;
}

/** What a provider of a trigger type does when one is bound. */
export interface Provider {
  registerTrigger(bound: Bound): Promise<void>;
  unregisterTrigger(bound: Bound): Promise<void>;
}

export interface Request {
  readonly function_id: string;
  readonly payload: unknown;
  readonly timeoutMs?: number;
  readonly action?: { type: "void" } | { type: "enqueue"; queue: string };
}

export interface ChannelRef {
  readonly channel_id: string;
  readonly access_key: string;
  readonly direction: "read" | "write";
}

/** Both ends of a channel. */
export interface Pipe {
  readonly texts: readonly string[];
  sendText(text: string): void;
  sendBytes(data: Buffer): Promise<unknown>;
  close(): void;
  /** The bytes that have come, once the channel has ended. */
  readAll(): Promise<Buffer>;
}

export interface Client {
  registerFunction(id: string, handler: Handler): Binding;
  registerTrigger(trigger: { type: string; function_id: string; config: unknown }): Binding;
  registerTriggerType(type: { id: string; description: string }, provider: Provider): unknown;
  trigger<T>(request: Request): Promise<T>;
  openChannel(): Promise<Pipe>;
  shutdown(): Promise<void>;
}

interface Channel {
  readonly writer: { readonly stream: Writable; sendMessage(text: string): void };
  readonly reader: { onMessage(take: (text: string) => void): void; readAll(): Promise<Buffer> };
}

/** A published client of Node; they differ in where their channels come from. */
function published(sdk: NodeClient, channelOf: () => Promise<Channel>): Client {
  return {
    registerFunction: (id, handler) => sdk.registerFunction(id, handler),
    registerTrigger: (trigger) => sdk.registerTrigger(trigger),
    registerTriggerType: (type, provider) => sdk.registerTriggerType(type, provider),
    trigger: (request) => sdk.trigger(request),
    shutdown: () => sdk.shutdown(),
    async openChannel() {
      const { writer, reader } = await channelOf();
      const texts: string[] = [];
      reader.onMessage((text: string) => texts.push(text));
      const bytes = reader.readAll();
      return {
        texts,
        sendText: (text) => writer.sendMessage(text),
        sendBytes: (data) => new Promise((done) => writer.stream.write(data, done)),
        close: () => writer.stream.end(),
        readAll: () => bytes,
      };
    },
  };
}

/** A published client as it is, its channels left out. */
export type NodeClient = Omit<Client, "openChannel">;

/** Dials again soon, so that no test waits for it. */
const SOON = { reconnectionConfig: { initialDelayMs: 20, maxDelayMs: 50 } };

function node022(url: string): Client {
  const sdk = registerWorker(url, SOON);
  return published(sdk, () => createChannel(sdk));
}

function node011(url: string): Client {
  const sdk = registerWorkerOf011(url, SOON);
  return published(sdk, () => sdk.createChannel());
}

const ORIGIN = "http://page.test";

export interface Generation {
  readonly name: string;
  /** Whether `engine::triggers::list` gives it instances, as its generation knows it. */
  readonly listsInstances: boolean;
  /** Whether it takes in what the engine says of bindings later: their end, their refusal. */
  readonly hearsOfBindings: boolean;
  connect(url: string): Client;
}

export const NODE: readonly Generation[] = [
  { name: "node 0.22.1", listsInstances: false, hearsOfBindings: true, connect: node022 },
  { name: "node 0.11.6", listsInstances: true, hearsOfBindings: false, connect: node011 },
];

export const GENERATIONS: readonly Generation[] = [
  ...NODE,
  {
    name: "browser 0.22",
    listsInstances: false,
    hearsOfBindings: true,
    connect: (url) => new BrowserClient(url, ORIGIN, { announces: true }),
  },
  {
    name: "browser 0.11",
    listsInstances: true,
    hearsOfBindings: true,
    connect: (url) => new BrowserClient(url, ORIGIN, { announces: false }),
  },
];

export interface Suite {
  readonly httpUrl: string;
  /** Another connection of the same generation. */
  client(): Client;
  call<T = unknown>(function_id: string, payload: unknown): Promise<T>;
  /** Waits until the engine has taken in what the first client has sent. */
  settled(): Promise<void>;
  readonly iii: Client;
}

const QUEUES = { single: { concurrency: 1 }, grouped: { type: "fifo", message_group_field: "group_id" } };

/** An engine with a client of this generation on it, dialled `via` another address when one is given; all end with the test. */
export async function suite(generation: Generation, via: (url: string) => Promise<string> = async (url) => url): Promise<Suite> {
  process.env["OTEL_ENABLED"] = "false";
  const bench = await httpBench({}, [ORIGIN], QUEUES);
  const url = await via(bench.busUrl);
  const clients: Client[] = [];
  const client = () => {
    const one = generation.connect(url);
    clients.push(one);
    return one;
  };
  onTestFinished(async () => {
    for (const one of clients) await one.shutdown();
    await bench.stop();
  });
  const iii = client();
  const call = <T>(function_id: string, payload: unknown) => iii.trigger<T>({ function_id, payload });
  return { httpUrl: bench.url, iii, client, call, settled: () => call("state::list_groups", {}) };
}
