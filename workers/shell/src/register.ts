// The shell worker: files below a root and programs run in it. Files are confined; programs are not until they run in a sandbox.
import { isAbsolute, resolve } from "node:path";
import { defineWorker, systemClock } from "@iii/sdk";
import { z } from "zod";
import { Root } from "./confine.ts";
import { exec, fsGrep, fsLs, fsRead, fsWrite } from "./contract.ts";
import { runProgram } from "./exec.ts";
import { listDir, readFile, writeFile } from "./files.ts";
import { grep } from "./grep.ts";
import { ProcessGroups } from "./process-group.ts";

const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

export const worker = defineWorker({
  name: "shell",
  config: z.object({
    root: z.string().min(1).default("./workspace"),
    /** Programs are found here. Default: this process's own search path. Relative parts are dropped. */
    path: z.string().optional(),
    max_read_bytes: z.int().positive().default(262_144),
    max_write_bytes: z.int().positive().default(8_388_608),
    max_output_bytes: z.int().positive().default(131_072),
    timeout_ms: z.int().positive().max(600_000).default(120_000),
    /** How long a stopped program may clean up before it is killed. */
    grace_ms: z.int().nonnegative().default(1_000),
  }),
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
