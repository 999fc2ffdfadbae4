// Session ids in the page's own addresses. Percent escapes would be decoded in part on the way, so ids have an escape of their own. Pure.

/** The address of a session's chat. */
export function chatPath(session_id: string): string {
  const safe = session_id.replace(/[^A-Za-z0-9._-]/g, (char) => `~${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `/chat/${safe}`;
}

/** The session that an address's part names. */
export function sessionOf(part: string): string {
  return part.replace(/~([0-9a-f]{2})/g, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
