// The page's entry: connects to the bus of its own origin and renders.
import { render } from "preact";
import { App } from "./app-store.ts";
import { PageLink } from "./page-link.ts";
import "./style/index.css";
import { AppProvider } from "./views/context.ts";
import { Shell } from "./views/shell.tsx";

async function main(): Promise<void> {
  const app = new App(await PageLink.open());
  app.start();
  const root = document.getElementById("app");
  if (root === null) return;
  render(
    <AppProvider value={app}>
      <Shell />
    </AppProvider>,
    root,
  );
}

void main();
