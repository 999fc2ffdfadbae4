// One engine per store file. The lock is the operating system's, on a small file beside: it ends with the process, however that ends.
import { DatabaseSync } from "node:sqlite";

/** Long enough for a killed engine's process to be gone. */
const WAIT_MS = 1_000;

/** @throws SQLITE_BUSY while another store, of this process or another one, has the lock. Returns its release. */
export function takeLock(file: string): () => void {
  const lock = new DatabaseSync(`${file}-lock`, { timeout: WAIT_MS });
  try {
    lock.exec("BEGIN EXCLUSIVE");
  } catch (thrown) {
    lock.close();
    throw thrown;
  }
  return () => lock.close();
}
