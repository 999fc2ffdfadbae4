// The body of an answer as frames: events of a stream, a whole document, or lines that belong to neither. What the body is is read from
// the body; servers put any content type above it. Bytes may be split anywhere.

export type Frame =
  | { readonly type: "event"; readonly name: string; readonly data: string }
  /** A line that is no field of an event stream. */
  | { readonly type: "stray"; readonly text: string }
  /** A body that is no event stream, whole. */
  | { readonly type: "document"; readonly text: string };

/** Text as lines, ended by LF, CR or CRLF. */
class Lines {
  #parts: string[] = [];
  #skipLineFeed = false;

  push(text: string): string[] {
    if (text === "") return [];
    const rest = this.#skipLineFeed && text.startsWith("\n") ? text.slice(1) : text;
    this.#skipLineFeed = text.endsWith("\r");
    const [first = "", ...more] = rest.split(/\r\n|\r|\n/);
    this.#parts.push(first);
    const last = more.pop();
    if (last === undefined) return [];
    const lines = [this.#parts.join(""), ...more];
    this.#parts = last === "" ? [] : [last];
    return lines;
  }

  end(): string {
    const rest = this.#parts.join("");
    this.#parts = [];
    return rest;
  }
}

/** Events that some servers send to keep a connection alive. */
const ALIVE: ReadonlySet<string> = new Set(["ping", "keepalive", "keep-alive", "heartbeat"]);
const FIELD = /^(data|event|id|retry)(?::\x20?|$)/;

/** Lines as events, as far as we use them: `id` and `retry` have no meaning for an answer. */
class Events {
  #name = "";
  #data: string[] = [];

  line(line: string): Frame[] {
    if (line === "") return this.end();
    if (line.startsWith(":")) return [];
    const [head, field] = FIELD.exec(line) ?? [];
    if (head === undefined) return [/^\s*\{/.test(line) ? { type: "event", name: "", data: line } : { type: "stray", text: line }];
    const value = line.slice(head.length);
    if (field === "event") this.#name = value.trim();
    if (field === "data") this.#data.push(value);
    return [];
  }

  /** An event ends at a blank line, or with the stream. One without data and name says nothing; nor does a sign of life. */
  end(): Frame[] {
    const [name, data] = [this.#name, this.#data.join("\n")];
    this.#name = "";
    this.#data = [];
    return ALIVE.has(name) || (data.trim() === "" && name === "") ? [] : [{ type: "event", name, data }];
  }
}

export interface FrameDecoder {
  push(bytes: Uint8Array): Frame[];
  /** What is left when the body is over. */
  end(): Frame[];
}

export function frameDecoder(): FrameDecoder {
  const decoder = new TextDecoder();
  const lines = new Lines();
  const events = new Events();
  let head = "";
  let document: string[] | undefined;
  let stream = false;

  function take(text: string): Frame[] {
    if (stream) return lines.push(text).flatMap((line) => events.line(line));
    if (document !== undefined) {
      document.push(text);
      return [];
    }
    head += text;
    const [first] = head.trimStart();
    if (first === undefined) return [];
    if (/[{[<]/.test(first)) document = [head];
    else {
      stream = true;
      return take(head);
    }
    return [];
  }

  return {
    push: (bytes) => take(decoder.decode(bytes, { stream: true })),
    end() {
      const frames = take(decoder.decode());
      if (document !== undefined) return [{ type: "document", text: document.join("") }];
      const last = lines.end();
      // A field name that was cut off is not a line of anything.
      const cut = ["data", "event", "id", "retry"].some((name) => name.startsWith(last));
      return [...frames, ...(cut ? [] : events.line(last)), ...events.end()];
    },
  };
}
