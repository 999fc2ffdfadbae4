// How views reach the page's state.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { App } from "../app-store.ts";

const AppContext = createContext<App | null>(null);
export const AppProvider = AppContext.Provider;

/** The page's state. Views are only rendered below its provider. */
export function useApp(): App {
  const app = useContext(AppContext);
  if (app === null) throw new Error("a view was rendered outside of the page");
  return app;
}
