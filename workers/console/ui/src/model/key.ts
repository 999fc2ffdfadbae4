// The key in a page's address, and what a page without a valid one says. Pure.

/** What may stand in a path segment as it is; anything else is no key of ours. */
const KEY = /^[A-Za-z0-9._~-]{1,512}$/;

/**
 * Takes `key=…` out of a fragment. `rest` is the fragment that stays, `""` or with its `#`; `key` is undefined when there is none or
 * when it cannot be one, and is out of the address all the same.
 */
export function keyIn(fragment: string): { readonly found: boolean; readonly key: string | undefined; readonly rest: string } {
  const parts = fragment.replace(/^#/, "").split("&");
  const own = parts.filter((part) => part.startsWith("key="));
  const rest = parts.filter((part) => part !== "" && !part.startsWith("key=")).join("&");
  const key = own.at(-1)?.slice("key=".length) ?? "";
  return { found: own.length > 0, key: KEY.test(key) ? key : undefined, rest: rest === "" ? "" : `#${rest}` };
}

/** Where the bus is: the page's own origin, under the key's name when there is a key. */
export function busUrl(at: { protocol: string; host: string }, key: string | undefined): string {
  const base = `${at.protocol === "https:" ? "wss" : "ws"}://${at.host}/ws`;
  return key === undefined ? base : `${base}/as/${key}`;
}

/**
 * What a page may do. `keyed`: the operator's rights. `none`: it came without a key. `expired`: the engine no longer knows its key; it
 * goes on without one. `locked`: the engine takes nobody without a key.
 */
export type Rights = "keyed" | "none" | "expired" | "locked";

const WHY: Readonly<Record<Exclude<Rights, "keyed">, string>> = {
  none: "This page was opened without a key, so it may look and post, but not decide.",
  expired: "The key of this page is no longer valid: the engine was started again. It may look and post, but not decide.",
  locked: "This engine lets nobody in without a key.",
};

/** Why a page cannot decide, and how to get in; undefined when it can. `path` is the page's own. */
export function locked(rights: Rights, path: string): { readonly why: string; readonly command: string } | undefined {
  return rights === "keyed" ? undefined : { why: WHY[rights], command: `iii open ${path}` };
}
