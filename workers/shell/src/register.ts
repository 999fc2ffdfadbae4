// The shell worker: files below a root and programs run in it. Files are confined; programs are not until they run in a sandbox.
import { isAbsolute, resolve } from "node:path";
import { defineWorker, systemClock } from "@iii/sdk";
import { Config } from "./config.ts";
import { Root } from "./confine.ts";
import { exec, fsGrep, fsLs, fsRead, fsWrite } from "./contract.ts";
import { runProgram } from "./exec.ts";
import { listDir, readFile, writeFile } from "./files.ts";
import { grep } from "./grep.ts";
import { ProcessGroups } from "./process-group.ts";

const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

export const worker = defineWorker({
  name: "shell",
  config: Config,
  async register(on, { config, root: base, random }) {
    const root = await Root.create(resolve(base, config.root));
    // Programs live in real time, whatever clock the bus runs on.
    const groups = new ProcessGroups(systemClock, config.grace_ms);
    const path = searchPath(config.path ?? process.env["PATH"] ?? DEFAULT_PATH);
    const deps = {
      root,
      groups,
      clock: systemClock,
      path,
      default_timeout_ms: config.timeout_ms,
      max_output_bytes: config.max_output_bytes,
    };
    on(fsRead, (request) => readFile(root, request, config));
    on(fsWrite, (request) => writeFile(root, request, config, random));
    on(fsLs, ({ path: given }) => listDir(root, given ?? "."));
    on(fsGrep, (request, { signal }) => grep(root, request, signal));
    on(exec, (request, { signal }) => runProgram(request, signal, deps));
    return { stopping: () => groups.endAll(), stop: () => groups.close() };
  },
});

function searchPath(path: string): string {
  return path.split(":").filter(isAbsolute).join(":") || DEFAULT_PATH;
}
