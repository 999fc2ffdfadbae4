// Processes of an engine that was killed: their ids are written down while they run, and what is still there at the next start is ended.
// Our own workers end by themselves when their engine is gone; a foreign command may not.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Spawner } from "@iii/engine/supervisor";
import { z } from "zod";

const Noted = z.array(z.object({ pid: z.int().positive(), born: z.string() }));
type Noted = z.infer<typeof Noted>;

/** When a process was started, in the kernel's ticks: a pid that was given out again has another. Undefined where there is no /proc. */
function bornAt(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

function readNoted(file: string): Noted {
  try {
    return Noted.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return [];
  }
}

/** Ends what an earlier engine on this data left running, each with its group. Returns how many there were. */
export function endLeftovers(file: string): number {
  const left = readNoted(file).filter(({ pid, born }) => bornAt(pid) === born);
  for (const { pid } of left) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // It ended by itself in the meantime.
    }
  }
  rmSync(file, { force: true });
  return left.length;
}

/** The same spawner, which notes in `file` what runs; from the moment when the file is `ours`, if that is not now. */
export function notingSpawner(spawner: Spawner, file: string, ours?: Promise<void>): Spawner {
  const running = new Map<number, string>();
  let open = ours === undefined;
  void ours?.then(() => {
    open = true;
    save();
  });
  const save = () => {
    if (!open) return;
    const noted: Noted = [...running].map(([pid, born]) => ({ pid, born }));
    try {
      writeFileSync(file, JSON.stringify(noted), { mode: 0o600 });
    } catch {
      // A full disk must not end the engine: without the note, a foreign command may outlive an engine that is killed.
    }
  };
  return {
    spawn(spec, events) {
      const child = spawner.spawn(spec, {
        ...events,
        exit(info) {
          if (child.pid !== undefined) running.delete(child.pid);
          save();
          events.exit(info);
        },
      });
      const born = child.pid === undefined ? undefined : bornAt(child.pid);
      if (child.pid !== undefined && born !== undefined) running.set(child.pid, born);
      save();
      return child;
    },
  };
}
