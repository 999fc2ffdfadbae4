// The builds that bundled workers bring along: pages that are made from source.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { StackConfig } from "@iii/engine/config";
import { bundledFile } from "./bundled.ts";

/** Asks the build itself, here: a process that finds nothing to do costs as much as the rest of the question. */
async function mustBuild(script: string): Promise<boolean> {
  try {
    const { needsBuild } = (await import(script)) as { needsBuild?: () => unknown };
    return needsBuild === undefined || needsBuild() !== false;
  } catch {
    return true; // its own process will say what is wrong with it
  }
}

/** Runs the build that a bundled worker's folder brings along, if it has one. A failed build is the worker's fault to report. */
export async function buildPages(config: StackConfig, note: (text: string) => void): Promise<void> {
  const scripts = config.workers
    .filter((entry) => entry.enabled)
    .map((entry) => bundledFile(entry.name, "build.ts"))
    .filter(existsSync);
  await Promise.all(
    scripts.map(async (script) => {
      if (!(await mustBuild(script))) return;
      const child = spawn(process.execPath, [script], { stdio: ["ignore", "ignore", "pipe"] });
      let errors = "";
      child.stderr.on("data", (chunk: Buffer) => {
        errors += chunk.toString();
      });
      const code = await new Promise((done) => {
        child.on("exit", done);
        child.on("error", done);
      });
      if (code !== 0) note(`build failed: node ${script}\n${errors.trim()}`);
    }),
  );
}
