// What a person must know before anything else on the page: no engine, no key, a worker that is down.

import { locked } from "../model/key.ts";
import { path } from "../router.tsx";
import { useApp } from "./context.ts";
import { Down } from "./down.tsx";
import { CopyButton } from "./plain.tsx";

export function Notices() {
  const { link, rights, directory, since } = useApp();
  // Before the socket is open nobody knows yet what it may do.
  const shut = rights.value === "none" && link.value === "connecting" ? undefined : locked(rights.value, path.value);
  const gone = link.value === "gone";
  const down = directory.down.value;
  if (!gone && shut === undefined && down.length === 0) return null;
  return (
    <div class="notices" role="status">
      {gone && (
        <p class="stop-note" data-tone="bad">
          <b>The engine is gone</b>: nothing answers at {location.host} since {new Date(since.value).toLocaleTimeString()}. Start it with{" "}
          <code>pnpm start</code>; this page tries again by itself. What is shown may be old.
        </p>
      )}
      {!gone && down.map((worker) => <Down key={worker.name} {...worker} />)}
      {!gone && shut !== undefined && (
        <p class="stop-note">
          {shut.why} <code>{shut.command}</code> prints a link with a key. <CopyButton text={shut.command} label="Copy the command" />
        </p>
      )}
    </div>
  );
}
