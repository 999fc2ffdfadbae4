// What a worker's process sees of the environment: what every program needs, ours, and what its manifest names. No keys of others.
import { StackConfig } from "@iii/engine/config";
import { expect, test } from "vitest";
import { planOf } from "../boot/stack.ts";

const ENV = {
  PATH: "/bin",
  HOME: "/home/x",
  LANG: "C",
  LC_ALL: "C",
  HTTPS_PROXY: "http://proxy",
  III_DATA_DIR: "data",
  OTEL_SERVICE_NAME: "s",
  ANTHROPIC_API_KEY: "one",
  OPENAI_API_KEY: "two",
  DATABASE_URL: "three",
  NODE_OPTIONS: "--inspect",
};

function plan(workers: unknown[]) {
  const config = StackConfig.parse({ version: 1, workers });
  return planOf(config, { root: "/r", urlOf: (name) => `ws://bus/as/token-of-${name}`, env: ENV });
}

const keysIn = (env: Readonly<Record<string, string>> | undefined) =>
  Object.keys(env ?? {}).filter((name) => name in ENV && !/^(III|OTEL)_/.test(name));
const USUAL = ["PATH", "HOME", "LANG", "LC_ALL", "HTTPS_PROXY"];

test("K7.8 a worker of its own process has the usual names, and none of the keys", () => {
  const { workers } = plan([{ name: "foreign", command: ["node", "x.js"], env: { MINE: "1" } }]);
  const env = workers[0]?.process?.env;
  expect(keysIn(env)).toEqual(USUAL);
  expect(env).toMatchObject({ MINE: "1", III_DATA_DIR: "data", OTEL_SERVICE_NAME: "s", III_URL: "ws://bus/as/token-of-foreign" });
});

test("K7.8 the vault's process has the keys that its manifest names, whatever runs it", () => {
  for (const source of [{ isolate: true }, { command: ["node", "vault.js"] }]) {
    const { workers } = plan([{ name: "auth-credentials", ...source }]);
    expect(keysIn(workers[0]?.process?.env)).toEqual([...USUAL, "ANTHROPIC_API_KEY", "OPENAI_API_KEY"]);
  }
});

test("K7.8 the host of bundled workers has what theirs need, and no more", () => {
  expect(keysIn(plan([{ name: "session" }]).host.env)).toEqual(USUAL);
  expect(keysIn(plan([{ name: "session" }, { name: "auth-credentials" }]).host.env)).toEqual([
    ...USUAL,
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
  ]);
});
