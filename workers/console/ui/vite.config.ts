// The page's build: hashed files, no inline script or style (the page runs under a strict content security policy).
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const engine = process.env["III_HTTP_URL"] ?? "http://127.0.0.1:3111";

// What the bundle's libraries import and the page never uses: markdown's own link finder and its tables of hosts and character names.
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const standIns = {
  "linkify-it": here("src/stand-ins/linkify.ts"),
  "punycode.js": here("src/stand-ins/punycode.ts"),
  entities: here("src/stand-ins/entities.ts"),
  "uc.micro": here("src/stand-ins/uc-micro.ts"),
};

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "/",
  resolve: { alias: standIns },
  build: {
    outDir: fileURLToPath(new URL("../dist", import.meta.url)),
    emptyOutDir: true,
    target: "es2023",
    // Browsers that know `light-dark()`; for older ones the bundler would write each colour twice.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // Under `pnpm dev:console` the page comes from vite and the bus from a running engine.
  server: { host: "127.0.0.1", proxy: { "/ws": { target: engine, ws: true, changeOrigin: true, rewriteWsOrigin: true } } },
});
