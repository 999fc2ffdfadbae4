// A worker that cannot start, in its own words: they name the file and the line.
import { Plain } from "./plain.tsx";

export function Down({ name, reason }: { name: string; reason: string }) {
  return (
    <p class="stop-note" data-tone="bad">
      <b>{name} is down</b>: <Plain text={reason} />
    </p>
  );
}
