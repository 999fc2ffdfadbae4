// Text exactly as it is: nothing is interpreted, and what would be invisible is shown as an escape.
import { visible } from "@iii/contracts/visible";

export function Plain({ text }: { text: string }) {
  return (
    <>
      {visible(text).map((part, index) =>
        part.hidden ? (
          <mark key={index} class="hidden-char" title="A character that would be invisible">
            {part.text}
          </mark>
        ) : (
          part.text
        ),
      )}
    </>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const copy = (event: MouseEvent) => {
    const button = event.currentTarget as HTMLButtonElement;
    navigator.clipboard.writeText(text).then(
      () => {
        button.textContent = "Copied";
      },
      () => {
        button.textContent = "Cannot copy";
      },
    );
  };
  return (
    <button type="button" class="button small ghost" aria-label={label} onClick={copy}>
      Copy
    </button>
  );
}
