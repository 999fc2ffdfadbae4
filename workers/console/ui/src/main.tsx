// The page's entry: connects to the bus of its own origin and renders.
import { browserDialer, connect } from "@iii/sdk/browser";
import { render } from "preact";
import { App } from "./app-store.ts";
import { busUrl } from "./bus.ts";
import "./style/index.css";
import { AppProvider } from "./views/context.ts";
import { Shell } from "./views/shell.tsx";

const app = new App(connect({ dialer: browserDialer(busUrl(location)), name: "console-page" }));
app.start();

const root = document.getElementById("app");
if (root !== null) {
  render(
    <AppProvider value={app}>
      <Shell />
    </AppProvider>,
    root,
  );
}
