// A model's server on loopback that speaks Anthropic's wire and does only what the test tells it: hold, go on, break off.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { until } from "./stack.ts";

export interface Exchange {
  /** The request's body. */
  readonly asked: { messages: unknown[] };
  /** Whether the other side has closed the request. */
  closed: boolean;
  /** Sends events as they are. */
  send(...events: object[]): void;
  /** Ends the answer as a server does. */
  end(): void;
  /** Breaks the connection. */
  cut(): void;
}

/** A whole answer that is given at once, in place of an exchange. */
export interface Canned {
  status: number;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

export interface ModelServer extends AsyncDisposable {
  readonly url: string;
  /** Answers for the next requests, used up in order. */
  readonly canned: Canned[];
  readonly exchanges: Exchange[];
  /** The n-th request, from 1, once it is there. */
  request(n: number): Promise<Exchange>;
}

export const wire = {
  start: { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } },
  text: (text: string, index = 0) => [
    { type: "content_block_start", index, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index, delta: { type: "text_delta", text } },
  ],
  more: (text: string, index = 0) => ({ type: "content_block_delta", index, delta: { type: "text_delta", text } }),
  tool: (json: string, index = 0) => [
    { type: "content_block_start", index, content_block: { type: "tool_use", id: `toolu_${index}`, name: "agent_trigger", input: {} } },
    { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: json } },
  ],
  close: (index = 0) => ({ type: "content_block_stop", index }),
  stop: (stop_reason: string) => [{ type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 9 } }, { type: "message_stop" }],
};

async function readJson(request: IncomingMessage): Promise<Exchange["asked"]> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString()) as Exchange["asked"];
}

function exchange(asked: Exchange["asked"], response: ServerResponse): Exchange {
  const one: Exchange = {
    asked,
    closed: false,
    send(...events) {
      for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
    },
    end: () => void response.end(),
    cut: () => void response.destroy(),
  };
  response.on("close", () => {
    one.closed = true;
  });
  return one;
}

export async function modelServer(): Promise<ModelServer> {
  const exchanges: Exchange[] = [];
  const canned: Canned[] = [];
  const server = createServer((request, response) => {
    void readJson(request).then((asked) => {
      const answer = canned.shift();
      if (answer !== undefined) {
        response.writeHead(answer.status, answer.headers).end(answer.body);
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      exchanges.push(exchange(asked, response));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    canned,
    request: (n) => until(`request ${n} at the model's server`, () => exchanges[n - 1]),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** A key that must stand nowhere but in the requests' headers. */
export const KEY = "canary-5f2c9d7e1b";

/** What a stack needs to take this server for Anthropic's. */
export function asAnthropic(server: ModelServer): Record<string, string> {
  return { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: KEY };
}

export const anthropic = { provider: "anthropic", model: "claude-opus-5-5" };
