// The http built-in: routes bound by workers, static mounts, /healthz and the status page. It answers values; sockets are the listener's.
import { toBusError } from "@iii/sdk";
import type { Binding, Builtin, EngineHost } from "../../host.ts";
import { type HealthReport, HttpTrigger, httpStatic } from "./contract.ts";
import { type HttpFront, type HttpRequest, type HttpResponse, jsonResponse } from "./port.ts";
import { conditionNotMet, fromError, fromReturn, notAllowed, notFound } from "./respond.ts";
import { createRoutes, type Match } from "./routes.ts";
import { createMounts, readMount } from "./static.ts";

const OWNER = "iii-http";

export interface HttpOptions {
  max_body_bytes?: number;
  timeout_ms?: number;
  /** What `GET /healthz` reports; without it the engine alone is reported as ready. */
  health?: () => HealthReport;
  version?: string;
}

/** The built-in and the front that the listener calls. Before the engine is there, everything answers 503. */
export interface HttpBuiltin extends Builtin {
  readonly front: HttpFront;
}

function isRead(request: HttpRequest): boolean {
  return request.method === "GET" || request.method === "HEAD";
}

function lastOfEach(query: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(query));
}

function parseBody(request: HttpRequest, bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0 || !(request.headers["content-type"] ?? "").includes("application/json")) return null;
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

function triggerPayload(request: HttpRequest, match: Match, bytes: Uint8Array): Record<string, unknown> {
  const path = match.route.config.api_path;
  return {
    query_params: lastOfEach(request.query),
    path_params: match.params,
    headers: request.headers,
    path,
    method: request.method,
    body: parseBody(request, bytes),
    trigger: { type: "http", path, method: request.method },
  };
}

type Trace = { traceparent: string | undefined; baggage: string | undefined };
interface Settings {
  readonly max_body_bytes: number;
  readonly timeout_ms: number;
}

/** Middleware in order; the first one that responds ends the request. */
async function middleware(
  host: EngineHost,
  settings: Settings,
  payload: Record<string, unknown>,
  match: Match,
  trace: Trace,
): Promise<HttpResponse | undefined> {
  const { path_params, query_params, headers, method } = payload;
  for (const function_id of match.route.config.middleware_function_ids ?? []) {
    const input = { phase: "preHandler", request: { path_params, query_params, headers, method }, context: {} };
    const result = await host.invoke({ function_id, payload: input, timeout_ms: settings.timeout_ms, ...trace });
    if (typeof result !== "object" || result === null || !("action" in result) || result.action !== "respond") continue;
    return fromReturn("response" in result ? result.response : undefined);
  }
  return undefined;
}

async function run(host: EngineHost, settings: Settings, request: HttpRequest, match: Match, trace: Trace): Promise<HttpResponse> {
  const payload = triggerPayload(request, match, await request.readBody(settings.max_body_bytes));
  const { condition_function_id } = match.route.config;
  if (condition_function_id !== undefined) {
    const met = await host.invoke({ function_id: condition_function_id, payload, timeout_ms: settings.timeout_ms, ...trace });
    if (met === false) return conditionNotMet();
  }
  const early = await middleware(host, settings, payload, match, trace);
  if (early !== undefined) return early;
  const invocation_id = host.random.uuid();
  const gone = () => host.cancel(invocation_id);
  request.signal.addEventListener("abort", gone, { once: true });
  try {
    const { function_id } = match.route;
    return fromReturn(await host.invoke({ function_id, payload, timeout_ms: settings.timeout_ms, invocation_id, ...trace }));
  } finally {
    request.signal.removeEventListener("abort", gone);
  }
}

async function answerRoute(host: EngineHost, settings: Settings, request: HttpRequest, match: Match): Promise<HttpResponse> {
  const baggage = request.headers["baggage"];
  const span = host.tracer.start(`${request.method} ${match.route.config.api_path}`, {
    kind: "server",
    traceparent: request.headers["traceparent"],
    baggage,
    attributes: { "http.request.method": request.method, "http.route": match.route.config.api_path },
  });
  try {
    const response = await run(host, settings, request, match, { traceparent: span.traceparent, baggage });
    span.end();
    return response;
  } catch (thrown) {
    const error = toBusError(thrown);
    const errorId = host.random.uuid();
    span.end({ code: error.code, message: error.message });
    host.log.warn({ code: error.code, error_id: errorId, route: match.route.config.api_path }, `http request failed: ${error.message}`);
    return fromError(error, errorId);
  }
}

function bindRoutes(host: EngineHost, routes: ReturnType<typeof createRoutes>): void {
  host.triggerType({
    id: "http",
    description: "Runs a function for HTTP requests to a path",
    owner: OWNER,
    config: HttpTrigger,
    bind: (binding: Binding) => routes.add({ id: binding.id, function_id: binding.function_id, config: HttpTrigger.parse(binding.config) }),
    unbind: (binding) => routes.remove(binding.id),
  });
}

export function httpBuiltin(options: HttpOptions = {}): HttpBuiltin {
  const settings: Settings = { max_body_bytes: options.max_body_bytes ?? 10 * 1_048_576, timeout_ms: options.timeout_ms ?? 30_000 };
  const routes = createRoutes();
  const mounts = createMounts();
  let host: EngineHost | undefined;

  function healthz(): HttpResponse {
    const durability = host?.store.durability ?? "none";
    const report = options.health?.() ?? { status: "ready" as const, workers: [], waiting: [], failed: [], durability };
    return jsonResponse(report.status === "ready" ? 200 : 503, report, [["cache-control", "no-store"]]);
  }

  async function answer(request: HttpRequest, engine: EngineHost): Promise<HttpResponse> {
    if (request.path === "/healthz" && isRead(request)) return healthz();
    const match = routes.match(request.method, request.path);
    if (match !== undefined) return answerRoute(engine, settings, request, match);
    return mounts.serve(request) ?? unserved(request);
  }

  function unserved(request: HttpRequest): HttpResponse {
    const others = routes.methodsOf(request.path);
    if (others.length > 0) return notAllowed(others);
    if (request.path !== "/" || !isRead(request)) return notFound();
    return jsonResponse(200, { name: "iii", version: options.version ?? "", health: "/healthz" });
  }

  return {
    name: "http",
    front: async (request) => {
      if (host === undefined) return jsonResponse(503, { error: { code: "store_unavailable", message: "the engine is starting" } });
      return answer(request, host).catch((thrown: unknown) => fromError(thrown, "internal"));
    },
    install(engine) {
      host = engine;
      bindRoutes(engine, routes);
      engine.handle(OWNER, httpStatic, async (spec, call) => {
        const mount = await readMount({ ...spec, owner: call.caller.worker_id });
        mounts.add(mount);
        return { files: mount.files.size, bytes: mount.bytes };
      });
      engine.onWorkers(({ event, worker_id }) => {
        if (event === "worker_disconnected") mounts.drop(worker_id);
      });
      return {};
    },
  };
}
