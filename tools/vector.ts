// Compiles the vector scan of the protocol: `node tools/vector.ts` after a change of sdk/src/protocol/vector.wat.
import { readFileSync, writeFileSync } from "node:fs";
import wabt from "wabt";

const SOURCE = new URL("../sdk/src/protocol/vector.wat", import.meta.url);
const TARGET = new URL("../sdk/src/protocol/vector-wasm.ts", import.meta.url);

/** The file that holds the compiled scan, as it must be. */
export async function compiled(): Promise<string> {
  const module = (await wabt()).parseWat("vector.wat", readFileSync(SOURCE, "utf8"), { simd: true });
  module.validate();
  const base64 = Buffer.from(module.toBinary({}).buffer).toString("base64");
  module.destroy();
  const lines = (base64.match(/.{1,120}/g) ?? []).map((line) => `  "${line}",`);
  return `// Made of vector.wat by \`node tools/vector.ts\`.\nexport const VECTOR_WASM = [\n${lines.join("\n")}\n].join("");\n`;
}

if (import.meta.main) writeFileSync(TARGET, await compiled());
