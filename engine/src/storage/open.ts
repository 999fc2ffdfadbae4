// Which store `engine.store` means: the one place that knows the adapters.
import { join } from "node:path";
import type { BusError } from "@iii/sdk";
import type { Store } from "../ports/store.ts";
import { createMemoryStore } from "./memory.ts";
import { createPostgresStore } from "./postgres.ts";
import { createSqliteStore } from "./sqlite.ts";

/**
 * The store of a setting that `EngineConfig` has checked. It is opened by its `open`.
 * `lost` hears that it can write no more although nothing was written: its place belongs to others now.
 */
export function openStore(setting: string, folder: string, lost?: (error: BusError) => void): Store {
  if (setting === "memory") return createMemoryStore();
  if (setting === "sqlite") return createSqliteStore({ folder });
  return createPostgresStore({ url: setting, ...(lost === undefined ? {} : { lost }) });
}

/** Where the rows of a setting are, for people: without the password that an address may hold. */
export function storePlace(setting: string, folder: string): string {
  if (setting === "memory") return "memory";
  if (setting === "sqlite") return join(folder, "engine.db");
  const { host, pathname } = new URL(setting);
  return `postgres://${host}${pathname}`;
}
