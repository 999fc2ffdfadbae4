// One message of the transcript, settled or still streaming.
import type { AssistantMessage, ContentBlock, FunctionResultMessage } from "@iii/contracts";
import { Component } from "preact";
import { failure } from "../model/advice.ts";
import { textOf } from "../model/calls.ts";
import type { LiveBlock, LiveMessage } from "../model/live-message.ts";
import { dollars } from "../model/text.ts";
import type { Entry, View } from "../model/transcript.ts";
import type { SessionStore } from "../session-store.ts";
import { GrowingMarkdown, MarkdownView } from "./markdown-view.tsx";
import { Plain } from "./plain.tsx";
import { ToolCard } from "./tool-card.tsx";

interface MessageProps {
  readonly entry: Entry;
  readonly view: View;
  readonly store: SessionStore;
}

/** A settled message is drawn again only when what it shows has changed, so that a token costs one message and not all. */
export class MessageView extends Component<MessageProps> {
  override shouldComponentUpdate(next: MessageProps): boolean {
    const { entry, view } = this.props;
    if (next.entry !== entry) return true;
    const still = next.view.calls === view.calls && next.view.turn === view.turn;
    return !still && entry.message.role !== "user";
  }

  override render({ entry, view, store }: MessageProps) {
    const { message } = entry;
    switch (message.role) {
      case "user":
        return <UserView entry={entry} content={message.content} timestamp={message.timestamp} />;
      case "assistant":
        return <AssistantView message={message} view={view} store={store} />;
      case "function_result":
        return view.asked.has(message.function_call_id) ? null : <StrayResult message={message} />;
      case "custom":
        return null;
    }
  }
}

/** A result whose call is not in the transcript. */
function StrayResult({ message }: { message: FunctionResultMessage }) {
  return (
    <article class="message" data-role="function_result">
      <Head who={message.function_id} timestamp={message.timestamp} />
      <pre class="block">
        <Plain text={textOf(message.content)} />
      </pre>
    </article>
  );
}

function Head({ who, timestamp, note }: { who: string; timestamp?: number; note?: string | undefined }) {
  return (
    <header class="message-head">
      <span class="who">{who}</span>
      {note !== undefined && <span class="muted">{note}</span>}
      {timestamp !== undefined && (
        <time class="muted" dateTime={new Date(timestamp).toISOString()} title={new Date(timestamp).toLocaleString()}>
          {new Date(timestamp).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}
        </time>
      )}
    </header>
  );
}

function UserView({ entry, content, timestamp }: { entry: Entry; content: readonly ContentBlock[]; timestamp: number }) {
  return (
    <article class="message" data-role="user" aria-label="You">
      <Head who="You" timestamp={timestamp} note={entry.posted === undefined ? undefined : entry.posted} />
      <div class="user-text">
        <Plain text={textOf(content)} />
      </div>
    </article>
  );
}

function AssistantView({ message, view, store }: { message: AssistantMessage; view: View; store: SessionStore }) {
  return (
    <article class="message" data-role="assistant" data-stop={message.stop_reason} aria-label={`Answer of ${message.model}`}>
      <Head who={message.model} timestamp={message.timestamp} note={usageNote(message)} />
      {message.content.map((block, index) => {
        const key = index;
        if (block.type === "text") return <MarkdownView key={key} text={block.text} />;
        if (block.type === "thinking") return <Thinking key={key} text={block.text} />;
        if (block.type === "function_call") return <ToolCard key={block.id} block={block} view={view} store={store} />;
        return (
          <p key={key} class="muted">
            image ({block.mime})
          </p>
        );
      })}
      <StopNote message={message} />
    </article>
  );
}

function usageNote(message: AssistantMessage): string | undefined {
  const usage = message.usage;
  if (usage === null || usage === undefined) return message.provider;
  const cost = usage.cost_usd === undefined ? "" : ` · ${dollars(usage.cost_usd)}`;
  return `${message.provider} · ${usage.input ?? 0} in · ${usage.output ?? 0} out${cost}`;
}

function StopNote({ message }: { message: AssistantMessage }) {
  if (message.stop_reason === "aborted") return <p class="stop-note">Stopped before it was complete.</p>;
  if (message.stop_reason === "length") return <p class="stop-note">Cut: the answer reached its longest allowed length.</p>;
  if (message.stop_reason !== "error") return null;
  const { code, text, next } = failure(message);
  return (
    <p class="stop-note" data-tone="bad">
      <b class="mono">{code}</b> <Plain text={text} /> {next}
    </p>
  );
}

function Thinking({ text }: { text: string }) {
  return (
    <details class="thinking">
      <summary>Reasoning</summary>
      <div class="thinking-text">
        <Plain text={text} />
      </div>
    </details>
  );
}

export function LiveView({ live, known }: { live: LiveMessage; known: boolean }) {
  const word = known ? "streaming" : "no word since the connection broke";
  return (
    <article class="message" data-role="assistant" data-streaming="true" aria-label="Answer, streaming">
      <Head who="Answer" note={live.attempt > 1 ? `${word} · attempt ${live.attempt}` : word} />
      {live.blocks.map((block, index) => (
        <LiveBlockView key={index} block={block} />
      ))}
    </article>
  );
}

function LiveBlockView({ block }: { block: LiveBlock }) {
  if (block.type === "text") return <GrowingMarkdown text={block.text} />;
  if (block.type === "thinking") {
    return (
      <details class="thinking" open>
        <summary>Reasoning</summary>
        <div class="thinking-text">
          <Plain text={block.text} />
        </div>
      </details>
    );
  }
  return (
    <div class="tool" data-status="writing">
      <div class="tool-line">
        <span class="tool-name mono">{block.name ?? "call"}</span>
        <span class="muted">is being written</span>
      </div>
      <pre class="block">
        <Plain text={block.text} />
      </pre>
    </div>
  );
}
