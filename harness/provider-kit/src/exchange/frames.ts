// Bytes of a server-sent event stream as data strings. Framing is the library's; splits inside characters are TextDecoder's.
import { createParser } from "eventsource-parser";

/** More than any vendor's event; a stream that never ends one must not fill the memory. */
const MAX_BUFFER = 16 * 1024 * 1024;

export interface SseDecoder {
  /** The data of every event that these bytes complete. Empty data (pings) is left out. */
  push(bytes: Uint8Array): string[];
  /** What is left when the stream ended without a blank line. */
  end(): string[];
}

export function sseDecoder(): SseDecoder {
  const decoder = new TextDecoder();
  let ready: string[] = [];
  const parser = createParser({ maxBufferSize: MAX_BUFFER, onEvent: ({ data }) => data !== "" && ready.push(data) });
  const drain = () => {
    const data = ready;
    ready = [];
    return data;
  };
  return {
    push(bytes) {
      parser.feed(decoder.decode(bytes, { stream: true }));
      return drain();
    },
    end() {
      parser.feed(`${decoder.decode()}\n\n`);
      return drain();
    },
  };
}
