// What the storage thread is asked and what it answers. One answer per request, in the order of the requests.
import type { Opened, Row, Write } from "../../ports/store.ts";

/** What the thread is started with. */
export interface Setting {
  readonly file: string;
  /** `full`: a commit is on the disk when it is acknowledged. `normal`: a power cut may take the last ones, the file stays whole. */
  readonly sync: "full" | "normal";
  /** Keeps space back for when the disk is full. One store of a folder does. */
  readonly reserve: boolean;
}

export type Request =
  | { readonly type: "open" }
  | { readonly type: "load" }
  | { readonly type: "get"; readonly space: string; readonly key: string }
  | { readonly type: "range"; readonly space: string; readonly after: string | undefined; readonly prefix: string; readonly limit: number }
  | { readonly type: "commit"; readonly writes: readonly Write[] /** It may use the last space. */; readonly small: boolean }
  | { readonly type: "space" }
  | { readonly type: "close" };

export interface Answer {
  readonly ok: true;
  readonly opened?: Opened;
  readonly rows?: readonly Row[];
  /** After a commit or a look at the space: there is too little of it. */
  readonly full?: boolean;
  /** The range goes on after this key. */
  readonly next?: string;
}

export interface Refusal {
  readonly ok: false;
  readonly code: string;
  readonly message: string;
}

export type Reply = Answer | Refusal;
