// The file vault: private, whole, and silent about what it holds.
import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fromEnvironment, label } from "../src/environment.ts";
import { fileVault, type Vault } from "../src/vault.ts";

const SECRET = "sk-very-secret-0123456789";
const key = (value: string) => ({ type: "api_key" as const, key: value });
let folder: string;
let path: string;
let vault: Vault;
let serial = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "vault-"));
  path = join(folder, "deep", "vault.json");
  vault = fileVault(path, () => {
    serial += 1;
    return String(serial);
  });
});
afterEach(() => rm(folder, { recursive: true }));

test("what was set is there for the next process; the file is the owner's alone", async () => {
  expect(await vault.get("openai")).toBeNull();
  await vault.set("openai", key(SECRET));
  const again = fileVault(path, () => "x");
  expect(await again.get("openai")).toEqual(key(SECRET));
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect((await stat(join(folder, "deep"))).mode & 0o777).toBe(0o700);
  expect(await again.providers()).toEqual(["openai"]);
  await again.delete("openai");
  expect(await vault.get("openai")).toBeNull();
});

test("changes at the same time all count, and no temporary file stays", async () => {
  const names = Array.from({ length: 20 }, (_, i) => `p${i}`);
  await Promise.all(names.map((name) => vault.set(name, key(name))));
  expect(await vault.providers()).toEqual(names.sort());
  expect(await readdir(join(folder, "deep"))).toEqual(["vault.json"]);
});

test("names like __proto__ are not found", async () => {
  await vault.set("openai", key(SECRET));
  expect(await vault.get("constructor")).toBeNull();
});

describe("a vault that is not right is refused with the way to mend it, never with its content", () => {
  const refused = async (action: Promise<unknown>, says: RegExp) => {
    const error: unknown = await action.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "io_error", message: expect.stringMatching(says) });
    expect(JSON.stringify(error) + String(error)).not.toContain(SECRET);
  };
  beforeEach(() => vault.set("openai", key(SECRET)));

  test("others may read it", async () => {
    await chmod(path, 0o644);
    await refused(vault.get("openai"), /mode is 644.*chmod 600/);
    await refused(vault.set("x", key("y")), /chmod 600/);
    expect(await readFile(path, "utf8")).toContain(SECRET);
  });
  test("it is a link", async () => {
    const real = join(folder, "real.json");
    await writeFile(real, "{}", { mode: 0o600 });
    await rm(path);
    await symlink(real, path);
    await refused(vault.get("openai"), /cannot be opened/);
  });
  test("it is not JSON", async () => {
    await writeFile(path, `{"openai": ${SECRET}`);
    await refused(vault.get("openai"), /not JSON/);
  });
  test("an entry is not a credential", async () => {
    await writeFile(path, JSON.stringify({ openai: { type: "api_key", secret: SECRET } }));
    await refused(vault.set("x", key("y")), /'openai' is not a credential/);
  });
});

test("the environment gives a key where the vendor's variable is set", () => {
  expect(fromEnvironment("anthropic", { ANTHROPIC_API_KEY: " k \n" })).toEqual(key("k"));
  expect(fromEnvironment("anthropic", { ANTHROPIC_API_KEY: "  " })).toBeNull();
  expect(fromEnvironment("toString", {})).toBeNull();
});

test("a label says kind and place, and no part of the secret", () => {
  expect(label(key(SECRET), "stored", "openai")).toBe("api-key (vault)");
  expect(label(key(SECRET), "environment", "openai")).toBe("api-key (OPENAI_API_KEY)");
});
