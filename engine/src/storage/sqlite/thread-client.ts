// The loop's end of the storage thread: asked one thing at a time, answered in order.
import { Worker } from "node:worker_threads";
import type { Reply, Request, Setting } from "./protocol.ts";

export class StorageThread {
  readonly #worker: Worker;
  readonly #waiting: ((reply: Reply) => void)[] = [];
  #ended: Reply | undefined;

  constructor(setting: Setting) {
    this.#worker = new Worker(new URL("./thread.ts", import.meta.url), { workerData: setting });
    this.#worker.on("message", (reply: Reply) => this.#waiting.shift()?.(reply));
    this.#worker.on("error", (error: Error) => this.#end(`the storage thread failed: ${error.message}`));
    this.#worker.on("exit", () => this.#end("the storage thread has ended"));
  }

  ask(request: Request): Promise<Reply> {
    if (this.#ended !== undefined) return Promise.resolve(this.#ended);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#worker.postMessage(request);
    });
  }

  #end(message: string): void {
    this.#ended ??= { ok: false, code: "store_unavailable", message };
    for (const resolve of this.#waiting.splice(0)) resolve(this.#ended);
  }
}
