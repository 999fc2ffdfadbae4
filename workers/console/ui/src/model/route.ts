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

export type Route =
  | { readonly view: "home" }
  | { readonly view: "fresh" }
  | { readonly view: "chat"; readonly part: string; readonly tab: "chat" | "trace"; readonly trace: string | undefined }
  | { readonly view: "nowhere" };

/** What an address shows. One that is not known leads nowhere, and never to something else in silence. */
export function routeOf(path: string): Route {
  const [first, part, tab, trace, ...more] = path.replace(/^\/|\/$/g, "").split("/");
  if (first === "" && part === undefined) return { view: "home" };
  if (first === "new" && part === undefined) return { view: "fresh" };
  if (first !== "chat" || part === undefined || part === "" || more.length > 0) return { view: "nowhere" };
  if (tab === undefined) return { view: "chat", part, tab: "chat", trace: undefined };
  return tab === "trace" ? { view: "chat", part, tab, trace } : { view: "nowhere" };
}
