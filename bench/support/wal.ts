// Counts the commits and bytes in a SQLite write-ahead log from outside the process that writes it. Reads only.
import { closeSync, openSync, readSync } from "node:fs";

const HEADER = 32;
const FRAME_HEADER = 24;

export interface WalCount {
  /** Changes whenever the log starts over; counts of different generations do not compare. */
  readonly generation: number;
  readonly commits: number;
  readonly bytes: number;
}

/** A frame that ends a transaction names the size of the database; all others hold 0 there. */
export function walCommits(file: string): WalCount {
  const fd = openSync(file, "r");
  try {
    const header = Buffer.alloc(HEADER);
    if (readSync(fd, header, 0, HEADER, 0) < HEADER) return { generation: 0, commits: 0, bytes: 0 };
    const pageSize = header.readUInt32BE(8);
    const generation = header.readUInt32BE(16);
    const frame = Buffer.alloc(FRAME_HEADER);
    let commits = 0;
    let at = HEADER;
    for (; readSync(fd, frame, 0, FRAME_HEADER, at) === FRAME_HEADER; at += FRAME_HEADER + pageSize) {
      if (frame.readUInt32BE(8) !== generation) break;
      if (frame.readUInt32BE(4) !== 0) commits += 1;
    }
    return { generation, commits, bytes: at - HEADER };
  } finally {
    closeSync(fd);
  }
}
