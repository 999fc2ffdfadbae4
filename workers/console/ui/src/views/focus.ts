// Where the keyboard goes next.

/** Puts the focus into the message box, unless a person has put it somewhere, or writes with a screen keyboard that would pop up. */
export function focusComposer(): void {
  if (document.activeElement !== document.body || !matchMedia("(pointer: fine)").matches) return;
  document.getElementById("message")?.focus();
}

/** After a decision: to the next card that waits, else to the message box. A person who is elsewhere by now stays there. */
export function focusAfter(card: HTMLElement | null): void {
  const here = document.activeElement;
  if (here !== document.body && card?.contains(here) !== true) return;
  const next = [...document.querySelectorAll<HTMLElement>(".approval")].find((one) => one !== card && one.dataset["decided"] !== "true");
  if (here instanceof HTMLElement) here.blur();
  if (next === undefined) focusComposer();
  else next.focus();
}
