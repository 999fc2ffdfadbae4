// The table of http routes: method and path shape to the binding that serves it now. No I/O.
import { BusError } from "@iii/sdk";
import FindMyWay, { type HTTPMethod } from "find-my-way";
import type { HttpTrigger } from "./contract.ts";

export interface Route {
  readonly id: string;
  readonly function_id: string;
  readonly config: HttpTrigger;
}

export interface Match {
  readonly route: Route;
  /** Raw: not URL-decoded. */
  readonly params: Record<string, string>;
}

interface Slot {
  readonly path: string;
  readonly method: HTTPMethod;
  /** Newest last; the last one serves. */
  readonly owners: Route[];
}

export interface Routes {
  /** The newest binding of a route serves it; when it goes, the one before serves again. @throws BusError when names of parameters conflict. */
  add(route: Route): void;
  remove(id: string): void;
  match(method: string, path: string): Match | undefined;
  /** Methods that other bindings serve on this path. */
  methodsOf(path: string): string[];
}

type Router = ReturnType<typeof FindMyWay>;
const METHODS: readonly HTTPMethod[] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];

function normalPath(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}
function shapeOf(path: string): string {
  return path.replaceAll(/:[^/]+/g, ":");
}
/** The router decodes what it matches; one more layer of escapes keeps parameters as they were sent. */
function escaped(path: string): string {
  return path.replaceAll("%", "%25");
}

function known(method: string): HTTPMethod | undefined {
  return METHODS.find((candidate) => candidate === method);
}

function findIn(router: Router, method: HTTPMethod, path: string): Match | undefined {
  const found = router.find(method, escaped(path));
  const slot = found?.store as Slot | undefined;
  const route = slot?.owners.at(-1);
  if (found === null || route === undefined) return undefined;
  const params = Object.entries(found.params).map(([name, value]) => [name, value ?? ""] as const);
  return { route, params: Object.fromEntries(params) };
}

export function createRoutes(): Routes {
  const router = FindMyWay({ ignoreTrailingSlash: false, caseSensitive: true });
  const slots = new Map<string, Slot>();
  const slotOf = (id: string) => [...slots].find(([, slot]) => slot.owners.some((owner) => owner.id === id));

  function remove(id: string): void {
    const found = slotOf(id);
    if (found === undefined) return;
    const [key, slot] = found;
    slot.owners.splice(
      slot.owners.findIndex((owner) => owner.id === id),
      1,
    );
    if (slot.owners.length > 0) return;
    slots.delete(key);
    router.off(slot.method, slot.path);
  }

  function open(key: string, path: string, method: HTTPMethod): Slot {
    const slot: Slot = { path, method, owners: [] };
    try {
      router.on(method, path, () => undefined, slot);
    } catch (error) {
      throw new BusError(
        "trigger_registration_failed",
        `'${path}' is not a route: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    slots.set(key, slot);
    return slot;
  }

  return {
    add(route) {
      const path = normalPath(route.config.api_path);
      const method = route.config.http_method;
      const key = `${method} ${shapeOf(path)}`;
      const slot = slots.get(key);
      if (slot !== undefined && slot.path !== path) {
        throw new BusError(
          "trigger_registration_failed",
          `route '${method} ${path}' conflicts with '${method} ${slot.path}': use the same parameter names`,
        );
      }
      remove(route.id);
      (slots.get(key) ?? open(key, path, method)).owners.push(route);
    },
    remove,
    match(method, path) {
      const verb = known(method);
      return verb === undefined ? undefined : findIn(router, verb, path);
    },
    methodsOf: (path) => METHODS.filter((method) => findIn(router, method, path) !== undefined),
  };
}
