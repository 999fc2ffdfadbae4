// The engine's listeners: the bus port, and the HTTP port that serves routes, files and the bus for browsers under /ws.

import type { Principal } from "@iii/sdk/protocol";
import type { HttpFront } from "./builtin/http/port.ts";
import { jsonResponse } from "./builtin/http/port.ts";
import type { EngineConfig } from "./config/schema.ts";
import type { ListenOptions } from "./transport/http.ts";
import { type Listener, listen } from "./transport/http.ts";

export type { HealthReport } from "./builtin/http/contract.ts";
export { type HttpBuiltin, httpBuiltin } from "./builtin/http/register.ts";

export interface Servers {
  /** The ports that were opened; the configured ones unless those were 0. */
  readonly port: number;
  readonly httpPort: number;
  close(): Promise<void>;
}

export interface ServeOptions {
  readonly config: Pick<EngineConfig, "host" | "port" | "http" | "allowed_hosts">;
  readonly front: HttpFront;
  /** Whom a bearer token proves a request to be from. */
  readonly principalOf?: (token: string) => Principal | undefined;
  /** Takes over upgrades; `prefix` stands before the bus paths: empty, or `/ws`. */
  readonly upgrades: (prefix: string) => ListenOptions["onUpgrade"];
}

const busOnly: HttpFront = async (request) =>
  jsonResponse(request.path === "/" ? 426 : 404, {
    error: { code: "NOT_FOUND", message: "this port speaks WebSocket; HTTP has a port of its own" },
  });

/** Opens both listeners, or neither. @throws BusError `port_in_use`. */
export async function serve(options: ServeOptions): Promise<Servers> {
  const { config, front, upgrades, principalOf } = options;
  const allowedHosts = config.allowed_hosts.map((name) => name.toLowerCase());
  const proof = principalOf === undefined ? {} : { principalOf };
  const shared = { host: config.host, allowedOrigins: config.http.allowed_origins, allowedHosts, ...proof };
  const bus: Listener = await listen({
    ...shared,
    port: config.port,
    purpose: { name: "bus", env: "III_PORT", key: "engine.port" },
    front: busOnly,
    onUpgrade: upgrades(""),
  });
  try {
    const purpose = { name: "HTTP", env: "III_HTTP_PORT", key: "engine.http.port" };
    const http = await listen({ ...shared, port: config.http.port, purpose, front, onUpgrade: upgrades("/ws") });
    return {
      port: bus.port,
      httpPort: http.port,
      close: async () => {
        await Promise.all([bus.close(), http.close()]);
      },
    };
  } catch (error) {
    await bus.close();
    throw error;
  }
}
