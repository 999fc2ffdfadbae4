import { expect, test } from "vitest";
import { HttpTrigger } from "../../src/builtin/http/contract.ts";
import { createRoutes } from "../../src/builtin/http/routes.ts";

const route = (id: string, api_path: string, http_method = "GET") => ({
  id,
  function_id: id,
  by: { kind: "none", name: "" } as const,
  config: HttpTrigger.parse({ api_path, http_method }),
});

test("the same shape with other parameter names conflicts", () => {
  const routes = createRoutes();
  routes.add(route("1", "/a/:x"));
  expect(() => routes.add(route("2", "/a/:y"))).toThrow(/conflicts/);
  routes.add(route("3", "/a/:y", "POST"));
  expect(routes.match("GET", "/a/1")?.route.id).toBe("1");
});

test("a path without its first slash is the same path", () => {
  const routes = createRoutes();
  routes.add(route("1", "a/b"));
  expect(routes.match("GET", "/a/b")?.route.id).toBe("1");
});

test("fixed parts win over parameters", () => {
  const routes = createRoutes();
  routes.add(route("any", "/a/:x"));
  routes.add(route("fixed", "/a/b"));
  expect(routes.match("GET", "/a/b")?.route.id).toBe("fixed");
  expect(routes.match("GET", "/a/c")?.params).toEqual({ x: "c" });
});

test("a route that is gone can be bound again with other names", () => {
  const routes = createRoutes();
  routes.add(route("1", "/a/:x"));
  routes.remove("1");
  routes.add(route("2", "/a/:y"));
  expect(routes.match("GET", "/a/1")?.params).toEqual({ y: "1" });
});

test("an unknown method matches nothing", () => {
  expect(createRoutes().match("BREW", "/")).toBeUndefined();
});
