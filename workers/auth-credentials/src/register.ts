// auth::* over the file vault and the environment. What it answers may hold a secret; what it logs or throws never does.
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { defineWorker } from "@iii/sdk";
import { Config } from "./config.ts";
import { authDeleteToken, authGetToken, authListProviders, authSetToken, authStatus } from "./contract.ts";
import { fromEnvironment, label, wayToKey } from "./environment.ts";
import { fileVault } from "./vault.ts";

function vaultPath(configured: string, root: string): string {
  const path = process.env["III_CREDENTIALS"] || configured;
  return path.startsWith("~/") ? join(homedir(), path.slice(2)) : resolve(root, path);
}

export const worker = defineWorker({
  name: "auth-credentials",
  config: Config,
  register(on, { config, root, random, log }) {
    const vault = fileVault(vaultPath(config.store_path, root), () => random.hex(8));

    on(authGetToken, async ({ provider }) => (await vault.get(provider)) ?? fromEnvironment(provider, process.env));
    on(authSetToken, async ({ provider, credential }) => {
      await vault.set(provider, credential);
      log.info({ provider, type: credential.type }, "a credential was stored");
      return { ok: true as const };
    });
    on(authDeleteToken, async ({ provider }) => {
      await vault.delete(provider);
      log.info({ provider }, "a credential was removed");
      return { ok: true as const };
    });
    on(authListProviders, async () => ({ providers: await vault.providers() }));
    on(authStatus, async ({ provider }) => {
      const stored = await vault.get(provider);
      if (stored !== null) return { configured: true, source: "stored" as const, label: label(stored, "stored", provider) };
      const found = fromEnvironment(provider, process.env);
      if (found === null) return { configured: false, way: wayToKey(provider) };
      return { configured: true, source: "environment" as const, label: label(found, "environment", provider) };
    });
  },
});
