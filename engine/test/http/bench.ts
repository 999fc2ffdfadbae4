// An engine with its HTTP listener on a free port, the bus under /ws as in the shipped stack.
import { connect, type Iii, silentLogger, systemClock, systemRandom } from "@iii/sdk";
import { type HttpOptions, httpBuiltin } from "../../src/builtin/http/register.ts";
import { defaultBuiltins } from "../../src/builtins.ts";
import { defaultEngineConfig } from "../../src/config.ts";
import { createEngine, type Engine } from "../../src/engine.ts";
import { createMemoryStore, linkedDialer } from "../../src/testing/index.ts";
import { listen } from "../../src/transport/http.ts";
import { upgradeHandler } from "../../src/transport/ws.ts";

export interface HttpBench {
  readonly url: string;
  readonly busUrl: string;
  readonly engine: Engine;
  connect(): Iii;
  stop(): Promise<void>;
}

export async function httpBench(options: HttpOptions = {}, allowedOrigins: readonly string[] = [], queues = {}): Promise<HttpBench> {
  const config = defaultEngineConfig({ store: "memory", queues });
  const http = httpBuiltin({ version: "0", ...options });
  const deps = { clock: systemClock, random: systemRandom, store: createMemoryStore(), log: silentLogger };
  const engine = createEngine({ config, deps, builtins: [...defaultBuiltins(config).filter((one) => one.name !== "http"), http] });
  await engine.start();
  const listener = await listen({
    host: "127.0.0.1",
    port: 0,
    purpose: { name: "HTTP", env: "E", key: "k" },
    allowedOrigins,
    front: http.front,
    onUpgrade: upgradeHandler(engine, { prefix: "/ws" }),
  });
  const clients: Iii[] = [];
  return {
    url: `http://127.0.0.1:${listener.port}`,
    busUrl: `ws://127.0.0.1:${listener.port}/ws`,
    engine,
    connect() {
      const client = connect({ dialer: linkedDialer(() => engine), name: "worker" });
      clients.push(client);
      return client;
    },
    async stop() {
      for (const client of clients) await client.close({ drain_ms: 0 });
      await listener.close();
      await engine.stop();
    },
  };
}
