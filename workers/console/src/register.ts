// The console as a worker: mounts its built page on the engine's HTTP listener. No function, no state, no knowledge of other workers.
import { existsSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { BusError, defineWorker, toBusError } from "@iii/sdk";
import { ConsoleConfig } from "./contract.ts";

const OWN_DIST = fileURLToPath(new URL("../dist", import.meta.url));

export const worker = defineWorker({
  name: "console",
  config: ConsoleConfig,
  register(_on, { config, iii, log, root }) {
    const dir = pageFolder(config.dir, root);
    const mount = async () => {
      await iii.trigger("http::static", { mount: config.mount, dir, spa: true });
    };
    let mounted = false;
    // A mount lives as long as this connection, so a connection that comes back mounts again.
    const unwatch = iii.onState((state) => {
      if (state !== "connected" || !mounted) return;
      mount().catch((error: unknown) =>
        log.error({ code: toBusError(error).code }, `console: cannot mount the page: ${toBusError(error).message}`),
      );
    });
    return {
      async ready() {
        await mount();
        mounted = true;
      },
      stop: unwatch,
    };
  },
});

function pageFolder(configured: string | undefined, root: string): string {
  const dir = configured === undefined ? OWN_DIST : isAbsolute(configured) ? configured : resolve(root, configured);
  if (existsSync(join(dir, "index.html"))) return dir;
  throw new BusError("config_invalid", `console: no built page in ${dir}; run: node workers/console/build.ts`, { details: { dir } });
}
