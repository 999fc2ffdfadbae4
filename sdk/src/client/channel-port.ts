// Channels: one writer, one reader, whole frames in order, with backpressure.
import { z } from "zod";

/** A channel end as it travels inside payloads. */
export const ChannelRef = z.object({
  channel_id: z.string().min(1),
  access_key: z.string().min(1),
  direction: z.enum(["read", "write"]),
});
export type ChannelRef = z.infer<typeof ChannelRef>;

export interface ChannelWriter {
  /** Resolves when the frame may leave without exceeding the buffer; rejects with `channel_closed` when the reader is gone. */
  send(frame: string | Uint8Array): Promise<void>;
  /** Ends the stream: everything sent before is delivered first. */
  close(): Promise<void>;
  /** Aborted when the reader is gone or the connection is lost. */
  readonly signal: AbortSignal;
}

/** Reads frames in order. Iteration ends when the writer closed; breaking out of the loop closes the channel. */
export interface ChannelReader extends AsyncIterable<string | Uint8Array> {
  close(): void;
}
