// Where a turn is written and stopped. A refused message stays in the box, with the reason above it.
import type { Model } from "@iii/contracts";
import { useSignal } from "@preact/signals";
import { type Advice, advice } from "../model/advice.ts";
import { isOver } from "../model/calls.ts";
import type { SessionStore } from "../session-store.ts";
import type { Choice } from "../start-turn.ts";
import { chosen, draft, keyOf, mode, modelKey } from "./composer-state.ts";
import { useApp } from "./context.ts";
import { Problem } from "./problem.tsx";

export function Composer({ store }: { store: SessionStore }) {
  const { models, link } = useApp();
  const { text, problem, stopping, send, stop, onKeyDown } = useComposer(store);
  const running = !isOver(store.view.value.turn);
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
        placeholder={running ? "A turn is running; this message waits in line" : "Message. Enter sends, Shift+Enter breaks the line"}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
        onKeyDown={onKeyDown}
      />
      <div class="composer-row">
        <ModelPicker models={models.value} />
        <ModePicker />
        <span class="composer-hint muted">
          demo: <code>say …</code> <code>call FUNCTION JSON</code> <code>slow MS …</code>
        </span>
        <span class="spacer" />
        {running && (
          <button type="button" class="button danger" disabled={stopping.value} onClick={() => void stop()}>
            {stopping.value ? "Stopping…" : "Stop"}
          </button>
        )}
        <button type="submit" class="button primary" disabled={text.value.trim() === "" || link.value === "connecting"}>
          {running ? "Queue" : "Send"}
        </button>
      </div>
    </form>
  );
}

function useComposer(store: SessionStore) {
  const { models, changed } = useApp();
  const text = draft(store.session_id);
  const problem = useSignal<Advice | null>(null);
  const stopping = useSignal(false);

  const send = async () => {
    const words = text.value;
    if (words.trim() === "") return;
    text.value = "";
    problem.value = null;
    try {
      await store.send(words, chosen(models.value));
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
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void send();
  };
  return { text, problem, stopping, send, stop, onKeyDown };
}

function ModelPicker({ models }: { models: readonly Model[] }) {
  const { provider, model } = chosen(models);
  return (
    <select
      class="input select"
      aria-label="Model"
      value={`${provider}/${model}`}
      onChange={(event) => {
        modelKey.value = event.currentTarget.value;
      }}
    >
      {models.length === 0 && <option value="/">default model</option>}
      {models.map((one) => (
        <option key={keyOf(one)} value={keyOf(one)}>
          {one.display_name} ({one.provider})
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
