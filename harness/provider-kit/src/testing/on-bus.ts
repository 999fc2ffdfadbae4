// Talks to a provider worker on the real bus the way a turn does.
import { type AssistantMessageEvent, type GenerateRequest, providerStream } from "@iii/contracts";
import { type ChannelRef, defineWorker } from "@iii/sdk";
import { authGetToken } from "@iii/worker-auth-credentials/contract";
import { z } from "zod";

/** Serves `auth::get_token` with one key for every provider; without a key, with none. */
export function credentials(key?: string) {
  return defineWorker({
    name: "test-credentials",
    config: z.object({}),
    register: (on) => on(authGetToken, () => (key === undefined ? null : { type: "api_key" as const, key })),
  });
}

/** What a test bus gives: enough of it to call and to move time. */
export interface BusLike {
  connect(name?: string): Promise<{
    createChannel(): Promise<{ reader: AsyncIterable<string | Uint8Array>; writerRef: ChannelRef }>;
    trigger<T>(id: string, payload: unknown, options: { timeout_ms: number; signal?: AbortSignal }): Promise<T>;
  }>;
  readonly clock: { advance(ms: number): Promise<void> };
}

export interface Asked {
  readonly events: AssistantMessageEvent[];
  readonly last: AssistantMessageEvent | undefined;
  readonly answer: unknown;
}

export interface AskOptions {
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: AssistantMessageEvent) => void;
}

/** Streams one answer and lets manual time pass while real bytes travel. */
export async function ask(
  bus: BusLike,
  provider: string,
  request: z.input<typeof GenerateRequest>,
  options: AskOptions = {},
): Promise<Asked> {
  const iii = await bus.connect("asker");
  const channel = await iii.createChannel();
  const payload = { ...request, writer_ref: channel.writerRef };
  const call = { timeout_ms: 0, ...(options.signal === undefined ? {} : { signal: options.signal }) };
  const answering = iii.trigger(providerStream(provider).id, payload, call).catch((thrown: unknown) => thrown);
  const events: AssistantMessageEvent[] = [];
  let reading = true;
  const read = async () => {
    for await (const frame of channel.reader) {
      const event: AssistantMessageEvent = JSON.parse(String(frame));
      events.push(event);
      options.onEvent?.(event);
    }
    reading = false;
  };
  const done = read();
  while (reading) {
    // Bytes travel in real time: manual time goes at ten times its pace, so that pauses are short and silence is not overtaken.
    await bus.clock.advance(10);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await done;
  return { events, last: events.at(-1), answer: await answering };
}
