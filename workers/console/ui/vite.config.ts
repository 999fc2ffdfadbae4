// The page's build: hashed files, no inline script or style (the page runs under a strict content security policy).
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const engine = process.env["III_HTTP_URL"] ?? "http://127.0.0.1:3111";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "/",
  // Schemas are checked where calls arrive, not in the page; a stand-in for the schema library saves a third of its bytes.
  resolve: { alias: { zod: fileURLToPath(new URL("src/no-schemas.ts", import.meta.url)) } },
  build: {
    outDir: fileURLToPath(new URL("../dist", import.meta.url)),
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // Under `pnpm dev:console` the page comes from vite and the bus from a running engine.
  server: { host: "127.0.0.1", proxy: { "/ws": { target: engine, ws: true, changeOrigin: true, rewriteWsOrigin: true } } },
});
