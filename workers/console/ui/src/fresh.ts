// The session that this tab has made and nobody has written to yet; it outlives a reload of the page.
import { newId } from "./bus.ts";

const STORED = "iii.fresh";

/** The id of a new session. */
export function freshSession(): string {
  const id = newId();
  sessionStorage.setItem(STORED, id);
  return id;
}

export function isFresh(session_id: string): boolean {
  return sessionStorage.getItem(STORED) === session_id;
}
