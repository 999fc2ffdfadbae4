// Where a turn is written and stopped. A refused message stays in the box, with the reason above it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Advice, advice } from "../model/advice.ts";
import { isOver } from "../model/calls.ts";
import { keyOf, type Offer, pick } from "../model/offer.ts";
import type { SessionStore } from "../session-store.ts";
import type { Choice } from "../start-turn.ts";
import { choice, draft, mode, modelKey } from "./composer-state.ts";
import { useApp } from "./context.ts";
import { focusComposer } from "./focus.ts";
import { Problem } from "./problem.tsx";

export function Composer({ store }: { store: SessionStore }) {
  const { directory, link } = useApp();
  const { models, preferred } = directory;
  const { text, problem, stopping, send, stop, onKeyDown } = useComposer(store);
  const running = !isOver(store.view.value.turn);
  useEffect(focusComposer, []);
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {problem.value !== null && (
        <Problem
          advice={problem.value}
          dismiss={() => {
            problem.value = null;
          }}
        />
      )}
      <textarea
        id="message"
        class="input composer-text"
        aria-label="Message"
        rows={Math.min(8, Math.max(2, text.value.split("\n").length))}
        placeholder={
          running ? "A turn is running; this message waits in line" : "What should it do? Enter sends, Shift+Enter breaks the line"
        }
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
        onKeyDown={onKeyDown}
      />
      <div class="composer-row">
        <ModelPicker list={models.value} preferred={preferred.value} />
        <ModePicker />
        <span class="spacer" />
        {running && (
          <button type="button" class="button danger" disabled={stopping.value} onClick={() => void stop()}>
            {stopping.value ? "Stopping…" : "Stop"}
          </button>
        )}
        <button
          type="submit"
          class="button primary"
          disabled={text.value.trim() === "" || link.value === "connecting" || link.value === "gone"}
        >
          {running ? "Queue" : "Send"}
        </button>
      </div>
    </form>
  );
}

function useComposer(store: SessionStore) {
  const { directory, changed } = useApp();
  const text = draft(store.session_id);
  const problem = useSignal<Advice | null>(null);
  const stopping = useSignal(false);

  const send = async () => {
    const words = text.value;
    if (words.trim() === "") return;
    text.value = "";
    problem.value = null;
    try {
      await store.send(words, choice(directory.models.value, directory.preferred.value));
    } catch (error) {
      if (text.value === "") text.value = words;
      problem.value = advice(error);
    }
  };
  const stop = async () => {
    stopping.value = true;
    try {
      await store.stop();
      changed();
    } catch (error) {
      problem.value = advice(error);
    } finally {
      stopping.value = false;
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // A key that is held down was pressed for something else: focus may have come here from a decision.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.repeat) return;
    event.preventDefault();
    void send();
  };
  return { text, problem, stopping, send, stop, onKeyDown };
}

function ModelPicker({ list, preferred }: { list: readonly Offer[]; preferred: string | undefined }) {
  const model = pick(list, modelKey.value, preferred);
  return (
    <select
      class="input select"
      aria-label="Model"
      value={model === undefined ? "" : keyOf(model)}
      onChange={(event) => {
        modelKey.value = event.currentTarget.value;
      }}
    >
      {model === undefined && <option value="">default model</option>}
      {list.map(({ model: one, why, way }) => (
        <option key={keyOf(one)} value={keyOf(one)} disabled={why !== undefined} title={way}>
          {one.display_name} ({one.provider}){why === undefined ? "" : ` · ${why}`}
        </option>
      ))}
    </select>
  );
}

function ModePicker() {
  const modes: readonly Choice["mode"][] = ["agent", "ask", "plan"];
  return (
    <select
      class="input select"
      aria-label="Mode"
      value={mode.value}
      onChange={(event) => {
        mode.value = modes.find((known) => known === event.currentTarget.value) ?? "agent";
      }}
    >
      {modes.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}
