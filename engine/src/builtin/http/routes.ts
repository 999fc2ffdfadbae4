// The table of http routes: method and path shape to the binding that serves it now. No I/O.
import { BusError, messageOf } from "@iii/sdk";
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
  /** Newest last; the last one serves. None: the slot waits to be taken out of the router. */
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

const newRouter = (): Router => FindMyWay({ ignoreTrailingSlash: false, caseSensitive: true });
const put = (router: Router, slot: Slot): void => router.on(slot.method, slot.path, () => undefined, slot);

/**
 * The slots by shape, in a router. The router takes a route out by building itself anew, which costs as much as all routes together:
 * routes that are gone stay in it, and are left out when one of them is in the way or they are more than the others.
 */
class Table {
  #router = newRouter();
  readonly #slots = new Map<string, Slot>();
  #gone = 0;

  /** The slot of a shape; one that is gone gives way to other parameter names. */
  get(key: string, path: string): Slot | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined || slot.path === path || slot.owners.length > 0) return slot;
    this.#rebuild();
    return undefined;
  }

  /** @throws BusError `trigger_registration_failed` for a path that is no route. */
  open(key: string, path: string, method: HTTPMethod): Slot {
    const slot: Slot = { path, method, owners: [] };
    if (this.#gone > this.#slots.size / 2) this.#rebuild();
    try {
      put(this.#router, slot);
    } catch (error) {
      throw new BusError("trigger_registration_failed", `'${path}' is not a route: ${messageOf(error)}`);
    }
    this.#slots.set(key, slot);
    this.#gone += 1;
    return slot;
  }

  own(slot: Slot, route: Route): void {
    if (slot.owners.length === 0) this.#gone -= 1;
    slot.owners.push(route);
  }

  leave(slot: Slot, id: string): void {
    slot.owners.splice(
      slot.owners.findIndex((owner) => owner.id === id),
      1,
    );
    if (slot.owners.length === 0) this.#gone += 1;
  }

  find(method: HTTPMethod, path: string): Match | undefined {
    const found = this.#router.find(method, escaped(path));
    if (found === null) return undefined;
    const route = (found.store as Slot).owners.at(-1);
    if (route === undefined) {
      this.#rebuild();
      return this.find(method, path);
    }
    const params = Object.entries(found.params).map(([name, value]) => [name, value ?? ""] as const);
    return { route, params: Object.fromEntries(params) };
  }

  #rebuild(): void {
    this.#router = newRouter();
    for (const [key, slot] of this.#slots) {
      if (slot.owners.length === 0) this.#slots.delete(key);
      else put(this.#router, slot);
    }
    this.#gone = 0;
  }
}

export function createRoutes(): Routes {
  const table = new Table();
  const places = new Map<string, Slot>();

  function remove(id: string): void {
    const slot = places.get(id);
    if (slot === undefined) return;
    places.delete(id);
    table.leave(slot, id);
  }

  return {
    add(route) {
      const path = normalPath(route.config.api_path);
      const method = route.config.http_method;
      const key = `${method} ${shapeOf(path)}`;
      const slot = table.get(key, path);
      if (slot !== undefined && slot.path !== path) {
        throw new BusError(
          "trigger_registration_failed",
          `route '${method} ${path}' conflicts with '${method} ${slot.path}': use the same parameter names`,
        );
      }
      remove(route.id);
      const place = slot ?? table.open(key, path, method);
      table.own(place, route);
      places.set(route.id, place);
    },
    remove,
    match(method, path) {
      const verb = known(method);
      return verb === undefined ? undefined : table.find(verb, path);
    },
    methodsOf: (path) => METHODS.filter((method) => table.find(method, path) !== undefined),
  };
}
