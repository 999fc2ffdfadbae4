#!/usr/bin/env node
// Turns the compile cache on before the first TypeScript file is read, which halves the start and saves the type stripper's memory.
// JavaScript, because a TypeScript file would need the stripper to say so.
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

const folder = process.env.NODE_COMPILE_CACHE ?? fileURLToPath(new URL("../../node_modules/.cache/iii-compile", import.meta.url));
enableCompileCache(folder);
// The processes that this one starts use it from their first file on.
process.env.NODE_COMPILE_CACHE = folder;
const args = process.argv.slice(2);
const { keep, wantsParent } = await import("./parent.js");
if (wantsParent(args)) {
  keep([process.execPath, ...process.execArgv, fileURLToPath(import.meta.url), ...args, "--no-parent"], {
    env: process.env,
    exit: (code) => process.exit(code),
    say: (text) => process.stderr.write(`iii: ${text}\n`),
  });
} else await import("../cli/main.ts");
