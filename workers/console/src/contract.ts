// What the console worker takes from `config.yaml`. It serves no functions: it hands its built page to the HTTP listener.
import { z } from "zod";

export const ConsoleConfig = z.strictObject({
  /** Where the page is mounted on the HTTP listener. */
  mount: z.string().startsWith("/").default("/"),
  /** Folder of the built page; default: this package's own `dist`. */
  dir: z.string().optional(),
});
export type ConsoleConfig = z.infer<typeof ConsoleConfig>;
