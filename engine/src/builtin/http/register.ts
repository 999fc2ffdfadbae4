// The http built-in: routes bound by workers, static mounts, /healthz and the status page. It answers values; sockets are the listener's.
import { toBusError } from "@iii/sdk";
import { BOUNDS } from "../../core/bounds.ts";
import type { Binding, Builtin, EngineHost } from "../../ports/host.ts";
import { checkDepth } from "../depth.ts";
import { type HealthReport, HttpTrigger, httpStatic } from "./contract.ts";
import { Exchange, failed, type Trace } from "./exchange.ts";
import { type HttpFront, type HttpRequest, type HttpResponse, jsonResponse } from "./port.ts";
import type { Pieces } from "./request-body.ts";
import { conditionNotMet, fromError, fromReturn, isLate, middlewareTimeout, notAllowed, notFound } from "./respond.ts";
import { createRoutes, type Match } from "./routes.ts";
import { createMounts, readMount } from "./static.ts";

const OWNER = "iii-http";

export interface HttpOptions {
  max_body_bytes?: number;
  timeout_ms?: number;
  /** How long a function that returned nothing may take to open its `response` channel. */
  grace_ms?: number;
  /** What `GET /healthz` reports; without it the engine alone is reported as ready. */
  health?: () => HealthReport;
  version?: string;
  /** `required`: a route answers only requests with a token of ours. The page's files and `/healthz` are open. */
  auth?: "local" | "required";
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

function isJson(request: HttpRequest): boolean {
  return (request.headers["content-type"] ?? "").toLowerCase().includes("application/json");
}

/** Null for what is not JSON. @throws BusError `payload_too_deep`. */
function parseJson(bytes: Uint8Array): unknown {
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
  checkDepth(body, "the request body");
  return body;
}

function triggerPayload(request: HttpRequest, match: Match, body: unknown): Record<string, unknown> {
  const path = match.route.config.api_path;
  return {
    query_params: lastOfEach(request.query),
    path_params: match.params,
    headers: request.headers,
    path,
    method: request.method,
    body,
    trigger: { type: "http", path, method: request.method },
  };
}

function unauthorized(): HttpResponse {
  const message = "this engine asks for a token (engine.auth: required): send 'Authorization: Bearer <key>'";
  return jsonResponse(401, { error: { code: "AUTH_ERROR", message } }, [["www-authenticate", "Bearer"]]);
}

interface Settings {
  readonly max_body_bytes: number;
  readonly timeout_ms: number;
  readonly grace_ms: number;
}

/** A matched request on its way to its function. */
interface Visit {
  readonly host: EngineHost;
  readonly settings: Settings;
  readonly request: HttpRequest;
  readonly match: Match;
  readonly trace: Trace;
}

/** Calls a function that stands before the route's own. It is cancelled when the client goes. */
async function consult({ host, settings, request, trace }: Visit, function_id: string, payload: unknown): Promise<unknown> {
  const invocation_id = host.random.uuid();
  const gone = (): void => host.cancel(invocation_id);
  request.signal.addEventListener("abort", gone, { once: true });
  try {
    return await host.invoke({ function_id, payload, timeout_ms: settings.timeout_ms, invocation_id, ...trace });
  } finally {
    request.signal.removeEventListener("abort", gone);
  }
}

const LATE = Symbol("late");

function lateOrThrow(thrown: unknown): typeof LATE {
  if (isLate(thrown)) return LATE;
  throw thrown;
}

/** Middleware in order; the first one that responds ends the request. */
async function middleware(visit: Visit, payload: Record<string, unknown>): Promise<HttpResponse | undefined> {
  const { path_params, query_params, headers, method } = payload;
  for (const function_id of visit.match.route.config.middleware_function_ids ?? []) {
    const input = { phase: "preHandler", request: { path_params, query_params, headers, method }, context: {} };
    const result = await consult(visit, function_id, input).catch(lateOrThrow);
    if (result === LATE) return middlewareTimeout(visit.host.random.uuid());
    if (typeof result !== "object" || result === null || !("action" in result) || result.action !== "respond") continue;
    return fromReturn("response" in result ? result.response : undefined);
  }
  return undefined;
}

/** What answers before the function is asked. */
async function early(visit: Visit, payload: Record<string, unknown>): Promise<HttpResponse | undefined> {
  const { condition_function_id } = visit.match.route.config;
  if (condition_function_id !== undefined && (await consult(visit, condition_function_id, payload)) === false) return conditionNotMet();
  return middleware(visit, payload);
}

/** Only JSON is held in memory; everything else flows through. */
async function bodyOf(request: HttpRequest, limit: number): Promise<{ pieces: Pieces; body: unknown }> {
  if (!isJson(request)) return { pieces: request.body(), body: null };
  const bytes = await request.readBody(limit);
  return { pieces: [bytes], body: parseJson(bytes) };
}

async function run(visit: Visit): Promise<{ response: HttpResponse; over?: Exchange["over"] }> {
  const { host, settings, request, match, trace } = visit;
  const { body, pieces } = await bodyOf(request, settings.max_body_bytes);
  const payload = triggerPayload(request, match, body);
  const response = await early(visit, payload);
  if (response !== undefined) return { response };
  const exchange = new Exchange(host, { ...settings, function_id: match.route.function_id, request, pieces, trace });
  return { response: await exchange.run(payload), over: exchange.over };
}

async function answerRoute(host: EngineHost, settings: Settings, request: HttpRequest, match: Match): Promise<HttpResponse> {
  const route = match.route.config.api_path;
  // What a client of HTTP sends beside its request must not cost it the answer.
  const sent = request.headers["baggage"];
  const baggage = sent !== undefined && sent.length > BOUNDS.baggage ? undefined : sent;
  const span = host.tracer.start(`${request.method} ${route}`, {
    kind: "server",
    traceparent: request.headers["traceparent"],
    baggage,
    attributes: { "http.request.method": request.method, "http.route": route },
  });
  try {
    const { response, over } = await run({
      host,
      settings,
      request,
      match,
      trace: { traceparent: span.traceparent, baggage, principal: request.principal },
    });
    if (over === undefined) span.end();
    else void over.then((error) => span.end(error));
    return response;
  } catch (thrown) {
    const { code, message } = toBusError(thrown);
    span.end({ code, message });
    return failed(host, thrown, route);
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
  const { max_body_bytes = 10 * 1_048_576, timeout_ms = 30_000, grace_ms = 500 } = options;
  const settings: Settings = { max_body_bytes, timeout_ms, grace_ms };
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
    if (match !== undefined) {
      if (options.auth === "required" && (request.principal?.kind ?? "none") === "none") return unauthorized();
      return answerRoute(engine, settings, request, match);
    }
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
