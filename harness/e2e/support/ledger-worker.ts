// A tool that writes what it did into a file outside the system, so that checks never trust our own journal.
// One line `start <call> <attempt>` is on disk before anything else happens, one line `end <call> <attempt>` before it answers.
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { defineFunction, defineWorker } from "@iii/sdk";
import { run } from "@iii/sdk/run";
import { z } from "zod";

const append = defineFunction({
  id: "ledger::append",
  about: "Append one line to the ledger file; changes the world, so it must never run twice by itself.",
  input: z.object({ note: z.string(), hold_ms: z.int().nonnegative().default(0) }),
  output: z.object({ noted: z.string() }),
});

function write(line: string): void {
  const fd = openSync(process.env["LEDGER"] ?? "ledger.txt", "a");
  writeSync(fd, `${line}\n`);
  fsyncSync(fd);
  closeSync(fd);
}

const worker = defineWorker({
  name: "ledger",
  config: z.object({}),
  register(on, { clock }) {
    on(append, async ({ note, hold_ms }, call) => {
      const meta = call.metadata as { function_call_id?: string; idempotency_key?: string } | undefined;
      const attempt = `${meta?.function_call_id ?? "none"} ${meta?.idempotency_key ?? "none"}`;
      write(`start ${attempt} ${note}`);
      if (hold_ms > 0) await new Promise<void>((resolve) => clock.setTimer(resolve, hold_ms));
      write(`end ${attempt} ${note}`);
      return { noted: note };
    });
  },
});

await run(worker);
