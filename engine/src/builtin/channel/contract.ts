// engine::channels::create: a one-writer, one-reader pipe of whole frames, opened as two extra sockets.
import { ChannelRef, defineFunction } from "@iii/sdk";
import { z } from "zod";

export const channelsCreate = defineFunction({
  id: "engine::channels::create",
  about: "Make a channel; each end travels inside payloads and is opened once. `buffer_size` counts frames (1 to 1024, default 64).",
  input: z.object({ buffer_size: z.number().optional() }),
  output: z.object({ writer: ChannelRef, reader: ChannelRef }),
});
