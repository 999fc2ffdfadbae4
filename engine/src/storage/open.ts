// Which store `engine.store` means: the one place that knows the adapters.
import { BusError } from "@iii/sdk";
import type { Store } from "../ports/store.ts";
import { createMemoryStore } from "./memory.ts";
import { createSqliteStore } from "./sqlite.ts";

/** The store of a setting that `EngineConfig` has checked. It is opened by its `open`. */
export function openStore(setting: string, folder: string): Store {
  if (setting === "memory") return createMemoryStore();
  if (setting === "sqlite") return createSqliteStore({ folder });
  throw new BusError("config_invalid", "engine.store: this version keeps its rows in sqlite or in memory; write 'sqlite'");
}
