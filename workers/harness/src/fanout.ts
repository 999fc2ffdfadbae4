// Who hears about which session, and the pushing: one at a time per browser, so that order holds and a slow page slows only itself.
// Knows no bus: pushes go through the port it is given. Subscriptions live in memory; after a restart pages subscribe again.
import type { AgentEvent } from "@iii/contracts";
import { type Logger, toBusError } from "@iii/sdk";
import type { SessionPush, SessionsChangedPush, SubscribeInput, SubscribeResult } from "./contract.ts";
import { Outbox, type OutboxLimits, type Push } from "./outbox.ts";

const MAX_FAILURES = 5;

export interface Missed {
  readonly epoch: string;
  readonly seq: number;
  readonly gap: boolean;
  readonly items: readonly { readonly seq: number; readonly data: unknown }[];
}
export interface FanoutPorts {
  /** Has every session's events, and new sessions, brought here from now on, before anything that is read later. Returns the end of it. */
  hear(): () => void;
  /** Reads what a session's stream holds after a cursor. */
  read(session_id: string, since: number | undefined, epoch: string | undefined): Promise<Missed>;
  /** Calls the browser's function. @throws BusError `function_not_found` when the page has gone. */
  pushEvent(browser_id: string, push: SessionPush): Promise<unknown>;
  pushSessions(browser_id: string, push: SessionsChangedPush): Promise<unknown>;
  /** Runs work that nobody waits for, outside of the call that caused it. */
  detach(work: () => Promise<void>): void;
}

interface Browser {
  readonly id: string;
  readonly sessions: Set<string>;
  all: boolean;
  readonly outbox: Outbox;
  /** Subscriptions that are being read: nothing is pushed meanwhile, so that the answer comes before what follows it. */
  held: number;
  pumping: boolean;
  failures: number;
}

export class Fanout {
  readonly #browsers = new Map<string, Browser>();
  readonly #ports: FanoutPorts;
  readonly #limits: OutboxLimits;
  readonly #log: Logger;
  /** Set while there is a browser: a turn that nobody watches is not listened to. */
  #deafen: (() => void) | undefined;

  constructor(ports: FanoutPorts, deps: { limits: OutboxLimits; log: Logger }) {
    this.#ports = ports;
    this.#limits = deps.limits;
    this.#log = deps.log;
  }

  get total(): number {
    return this.#browsers.size;
  }

  async subscribe({ browser_id, session_id, since, epoch }: SubscribeInput): Promise<SubscribeResult> {
    const browser = this.#browser(browser_id);
    browser.failures = 0;
    if (session_id === null || session_id === undefined) {
      browser.all = true;
      return { ok: true, total_browsers: this.total };
    }
    browser.sessions.add(session_id);
    browser.held += 1;
    try {
      const missed = await this.#ports.read(session_id, since, epoch);
      browser.outbox.forget(session_id, missed.epoch, missed.seq);
      const items = missed.items.map(({ seq, data }) => ({ seq, event: data }));
      return { ok: true, total_browsers: this.total, epoch: missed.epoch, seq: missed.seq, gap: missed.gap, items };
    } finally {
      browser.held -= 1;
      this.#wake(browser);
    }
  }

  unsubscribe(browser_id: string, session_id: string | null | undefined): void {
    const browser = this.#browsers.get(browser_id);
    if (browser === undefined) return;
    if (session_id === null || session_id === undefined) browser.all = false;
    else browser.sessions.delete(session_id);
    if (!browser.all && browser.sessions.size === 0) this.#remove(browser);
  }

  event(session_id: string, event: AgentEvent, cursor: { seq?: number | undefined; epoch?: string | undefined }): void {
    let bytes: number | undefined;
    for (const browser of this.#browsers.values()) {
      if (!browser.all && !browser.sessions.has(session_id)) continue;
      bytes ??= JSON.stringify(event).length;
      browser.outbox.event({ session_id, event, ...defined(cursor) }, bytes);
      this.#wake(browser);
    }
  }

  sessionCreated(session_id: string): void {
    for (const browser of this.#browsers.values()) {
      if (!browser.all) continue;
      browser.outbox.sessions([session_id]);
      this.#wake(browser);
    }
  }

  #browser(id: string): Browser {
    const known = this.#browsers.get(id);
    if (known !== undefined) return known;
    const made = { id, sessions: new Set<string>(), all: false, outbox: new Outbox(this.#limits), held: 0, pumping: false, failures: 0 };
    this.#browsers.set(id, made);
    this.#deafen ??= this.#ports.hear();
    return made;
  }

  #remove(browser: Browser): void {
    if (this.#browsers.get(browser.id) !== browser) return;
    this.#browsers.delete(browser.id);
    if (this.total > 0) return;
    this.#deafen?.();
    this.#deafen = undefined;
  }

  #wake(browser: Browser): void {
    if (browser.pumping || browser.held > 0 || browser.outbox.size === 0) return;
    browser.pumping = true;
    this.#ports.detach(() => this.#pump(browser));
  }

  async #pump(browser: Browser): Promise<void> {
    try {
      while (browser.held === 0 && this.#browsers.get(browser.id) === browser) {
        const item = browser.outbox.take();
        if (item === undefined) return;
        await this.#push(browser, item);
      }
    } finally {
      browser.pumping = false;
    }
  }

  async #push(browser: Browser, item: Push): Promise<void> {
    try {
      if (item.kind === "event") await this.#ports.pushEvent(browser.id, item.push);
      else await this.#ports.pushSessions(browser.id, { added: [...item.added], removed: [] });
      browser.failures = 0;
    } catch (thrown) {
      this.#failed(browser, item, toBusError(thrown).code);
    }
  }

  #failed(browser: Browser, item: Push, code: string): void {
    const gone = code === "function_not_found";
    if (gone && item.kind === "sessions") return; // a page need not care about other sessions
    browser.failures += 1;
    if (gone || browser.failures >= MAX_FAILURES) {
      this.#remove(browser);
      this.#log.debug({ browser_id: browser.id, code }, "a browser is gone; it may subscribe again");
      return;
    }
    if (item.kind === "event") browser.outbox.gap(item.push.session_id);
    else browser.outbox.sessions(item.added);
  }
}

function defined({ seq, epoch }: { seq?: number | undefined; epoch?: string | undefined }): { seq?: number; epoch?: string } {
  return { ...(seq === undefined ? {} : { seq }), ...(epoch === undefined ? {} : { epoch }) };
}
