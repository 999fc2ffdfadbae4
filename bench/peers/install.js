// Installs the peers from their own lock, with a Node of their own, and builds the one native part with that Node's headers: nothing else is
// downloaded. Needs a C++ compiler and Python. Runs on any Node.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const run = (command, args, cwd, env = {}) => execFileSync(command, args, { cwd, stdio: "inherit", env: { ...process.env, ...env } });

if (!existsSync(join(modules, "better-sqlite3/build/Release/better_sqlite3.node"))) {
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], here);
  run(process.execPath, ["installArchSpecificPackage.js"], join(modules, "node"));
  const arch = process.platform === "win32" ? "win" : process.platform;
  const headers = join(modules, "node/node_modules", `node-${arch}-${process.arch}`);
  run("npx", ["-y", "node-gyp", "rebuild", "--release"], join(modules, "better-sqlite3"), { npm_config_nodedir: headers });
}
