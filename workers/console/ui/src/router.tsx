// The page's own address: read as a signal, changed without loading the page again.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX, TargetedMouseEvent } from "preact";
import { useLayoutEffect } from "preact/hooks";

/** The path of the address that is shown. */
export const path = signal(location.pathname);
window.addEventListener("popstate", () => {
  path.value = location.pathname;
});

function go(to: string, how: "pushState" | "replaceState"): void {
  history[how](null, "", to);
  path.value = location.pathname;
}

type LinkProps = Pick<JSX.IntrinsicElements["a"], "class" | "aria-current" | "onClick"> & { href: string; children: ComponentChildren };

/** A link inside the page. Opened with a modifier or another button it does what the browser does. */
export function Link({ href, onClick, ...rest }: LinkProps) {
  const click = (event: TargetedMouseEvent<HTMLAnchorElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    if (typeof onClick === "function") onClick(event);
    go(href, "pushState");
  };
  return <a href={href} onClick={click} {...rest} />;
}

export function Redirect({ to }: { to: string }) {
  useLayoutEffect(() => go(to, "replaceState"), [to]);
  return null;
}
