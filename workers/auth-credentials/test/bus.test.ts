// auth::* on the real bus: who may ask, and what is never said.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testBus } from "@iii/engine/testing";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { authDeleteToken, authGetToken, authListProviders, authSetToken, authStatus } from "../src/contract.ts";
import { worker } from "../src/register.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "auth-"));
  vi.stubEnv("III_CREDENTIALS", "");
  vi.stubEnv("OPENAI_API_KEY", "");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});
const boot = () => testBus([{ worker, config: { store_path: join(folder, "vault.json") } }]);
const credential = { type: "api_key" as const, key: "sk-secret-1" };

test("stored before environment before nothing; status names the place and never the secret", async () => {
  await using bus = await boot();
  const provider = "openai";
  expect((await bus.call(authGetToken, { provider })) ?? null).toBeNull();
  expect(await bus.call(authStatus, { provider })).toMatchObject({ configured: false });
  vi.stubEnv("OPENAI_API_KEY", "sk-from-env");
  expect(await bus.call(authGetToken, { provider })).toEqual({ type: "api_key", key: "sk-from-env" });
  expect(await bus.call(authStatus, { provider })).toEqual({ configured: true, source: "environment", label: "api-key (OPENAI_API_KEY)" });
  await bus.call(authSetToken, { provider, credential });
  expect(await bus.call(authGetToken, { provider })).toEqual(credential);
  expect(await bus.call(authStatus, { provider })).toEqual({ configured: true, source: "stored", label: "api-key (vault)" });
  expect(await bus.call(authListProviders, {})).toEqual({ providers: [provider] });
  await bus.call(authDeleteToken, { provider });
  expect(await bus.call(authListProviders, {})).toEqual({ providers: [] });
});

test("a bad credential is refused by its field, without repeating it", async () => {
  await using bus = await boot();
  const bad = bus.call("auth::set_token", { provider: "openai", credential: { type: "password", key: "sk-secret-1" } });
  const error: unknown = await bad.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "invalid_payload", message: expect.stringContaining("credential.type") });
  expect(String(error) + JSON.stringify(error)).not.toContain("sk-secret-1");
});

test("a secret of any shape leaves no trace, whether it is stored or handed out", async () => {
  await using bus = await testBus([{ worker, config: { store_path: join(folder, "vault.json") } }], { trace: true });
  const secrets = { key: "0f1e2d3c4b5a69788796a5b4", access_token: "at-4b5a6978", provider_extra: { id: "pe-8796a5b4" } };
  const traced = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` };
  for (const type of ["api_key", "oauth"] as const) {
    await bus.call("auth::set_token", { provider: type, credential: { type, ...secrets } }, traced);
    await bus.call("auth::get_token", { provider: type }, traced);
  }
  await bus.clock.advance(5_000);
  const { spans } = await bus.call<{ spans: unknown[] }>("engine::traces::list", { search_all_spans: true, include_internal: true });
  const told = JSON.stringify(spans);
  expect(told).toContain("execute auth::get_token");
  expect(told).toContain("iii.payload.json");
  for (const secret of [secrets.key, secrets.access_token, secrets.provider_extra.id]) expect(told).not.toContain(secret);
});

test("K7.2 a key goes to the entry that serves its provider, and to no other", async () => {
  await using bus = await boot();
  await bus.call(authSetToken, { provider: "openai", credential });
  const ask = async (name: string, provides: string[], calls = ["auth::get_token"]) => {
    bus.entries.set(name, { provides, calls });
    return (await bus.connect(name, { as: { kind: "entry", name } })).trigger(authGetToken, { provider: "openai" });
  };
  await expect(ask("other", ["provider::anthropic::*"])).rejects.toMatchObject({ code: "FORBIDDEN" });
  await expect(ask("silent", ["provider::openai::*"], [])).rejects.toMatchObject({ code: "FORBIDDEN" });
  expect(await ask("own", ["provider::openai::*"])).toEqual(credential);
});

test("neither an agent nor a browser gets near it", async () => {
  await using bus = await boot();
  await bus.call(authSetToken, { provider: "openai", credential });
  await expect(bus.call(authGetToken, { provider: "openai" }, { origin: "agent" })).rejects.toMatchObject({ code: "FORBIDDEN" });
  const browser = await bus.connect("page", { origin: "http://127.0.0.1:3111", as: { kind: "none", name: "" } });
  await expect(browser.trigger(authGetToken, { provider: "openai" })).rejects.toMatchObject({ code: "FORBIDDEN" });
  await expect(browser.trigger(authStatus, { provider: "openai" })).rejects.toMatchObject({ code: "FORBIDDEN" });
  const person = await bus.connect("page", { origin: "http://127.0.0.1:3111", as: { kind: "operator", name: "page" } });
  await expect(person.trigger(authGetToken, { provider: "openai" })).rejects.toMatchObject({ code: "FORBIDDEN" });
  expect(await person.trigger(authStatus, { provider: "openai" })).toMatchObject({ configured: true });
});

test.each([
  [
    "a vendor whose variable is known",
    "anthropic",
    "No key for anthropic: set ANTHROPIC_API_KEY before the start, or store it with auth::set_token",
  ],
  ["one that is not", "acme", "No key for acme: store it with auth::set_token"],
  ["a name that every object has", "constructor", "No key for constructor: store it with auth::set_token"],
])("U46 a missing key is told with the way to give one: %s", async (_title, provider, way) => {
  vi.stubEnv("ANTHROPIC_API_KEY", "");
  await using bus = await boot();
  expect(await bus.call(authStatus, { provider })).toEqual({ configured: false, way: expect.stringContaining(way) });
});
