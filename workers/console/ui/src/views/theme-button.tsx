// Light, dark, or what the system says; kept in this browser.
import { useSignal } from "@preact/signals";

const ORDER = ["system", "light", "dark"] as const;
const GLYPH = { system: "◐", light: "☀", dark: "☾" } as const;
type Theme = (typeof ORDER)[number];

export function ThemeButton() {
  const theme = useSignal<Theme>(ORDER.find((known) => known === localStorage.getItem("iii.theme")) ?? "system");
  const turn = () => {
    const next = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] ?? "system";
    theme.value = next;
    localStorage.setItem("iii.theme", next);
    if (next === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = next;
  };
  return (
    <button type="button" class="icon-button" onClick={turn} aria-label={`Theme: ${theme.value}`} title={`Theme: ${theme.value}`}>
      {GLYPH[theme.value]}
    </button>
  );
}
