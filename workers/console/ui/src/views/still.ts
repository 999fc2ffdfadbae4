// Whether a person can have meant what they clicked: it must have stood where it stands for a while.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** A click sooner than this after its target appeared or moved was aimed at what stood there before. */
const DEAF_MS = 500;
const LOOK_MS = 100;
/** Smaller moves are rounding. */
const NEAR_PX = 2;

/** Tells, at a click, whether `node` has stood still, and the window has had the focus, for long enough. `data-still` shows it. */
export function useStill(node: RefObject<HTMLElement | null>): () => boolean {
  const place = useRef({ top: 0, left: 0, since: performance.now() });
  const look = (): boolean => {
    const now = performance.now();
    const { current } = node;
    if (current === null) return false;
    const at = current.getBoundingClientRect();
    const { top, left } = place.current;
    const moved = Math.abs(at.top - top) >= NEAR_PX || Math.abs(at.left - left) >= NEAR_PX;
    if (moved) place.current = { top: at.top, left: at.left, since: now };
    const still = now - place.current.since >= DEAF_MS;
    current.dataset["still"] = String(still);
    return still;
  };
  useLayoutEffect(() => {
    const back = () => {
      place.current.since = performance.now();
    };
    look();
    const timer = setInterval(look, LOOK_MS);
    window.addEventListener("focus", back);
    return () => {
      clearInterval(timer);
      window.removeEventListener("focus", back);
    };
  }, []);
  return look;
}
