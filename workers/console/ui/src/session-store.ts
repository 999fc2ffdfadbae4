// One open session: subscribes first, then reads the snapshot, then applies pushes. Owns no DOM.
import type { AgentEvent, AgentMessage } from "@iii/contracts";
import type { Iii } from "@iii/sdk";
import type * as Harness from "@iii/worker-harness/contract";
import type * as Session from "@iii/worker-session/contract";
import type * as Turn from "@iii/worker-turn-orchestrator/contract";
import { signal } from "@preact/signals";
import { call, newId } from "./bus.ts";
import { type Advice, advice, isAbsent } from "./model/advice.ts";
import { isOver } from "./model/calls.ts";
import { applyPush, EMPTY, fromSnapshot, type Push, post, unpost, type View } from "./model/transcript.ts";
import { type Choice, startTurn } from "./start-turn.ts";

export interface SessionDeps {
  readonly iii: Iii;
  readonly browser_id: string;
  readonly session_id: string;
  /** The date as the server would tell it, in ms. */
  date(): number;
  /** Something changed that other parts of the page show too: the list of sessions, what waits for a decision. */
  changed(): void;
}

const FLUSH_MS = 16;
const SETTLE_MS = 400;

export class SessionStore {
  readonly session_id: string;
  readonly view = signal<View>(EMPTY);
  readonly loaded = signal(false);
  readonly problem = signal<Advice | null>(null);
  readonly #deps: SessionDeps;
  #waiting: Push[] = [];
  #flushTimer: ReturnType<typeof setTimeout> | undefined;
  #settleTimer: ReturnType<typeof setTimeout> | undefined;
  #loading: Promise<void> | undefined;
  #again = false;
  #closed = false;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.session_id = deps.session_id;
  }

  /** Reads the truth. While it runs, pushes wait; a wish during a load makes one more load. Never rejects: `problem` has the reason. */
  load(): Promise<void> {
    if (this.#loading !== undefined) {
      this.#again = true;
      return this.#loading;
    }
    this.#loading = this.#read().finally(() => {
      this.#loading = undefined;
      this.#flush();
      if (this.#again) this.#settle();
      this.#again = false;
    });
    return this.#loading;
  }

  async #read(): Promise<void> {
    const { iii, browser_id, session_id } = this.#deps;
    try {
      const asked = { browser_id, session_id, ...this.#from() };
      const live = await call<typeof Harness.uiSubscribe>(iii, "ui::subscribe", asked).catch(unlessAbsent);
      // In this order: what is still on its way to the transcript may arrive there meanwhile, and is taken once.
      const turn = await call<typeof Turn.turnGetState>(iii, "turn::get_state", { session_id })
        .then((view) => view ?? null)
        .catch(unlessAbsent);
      const tree = await call<typeof Session.sessionMessages>(iii, "session-tree::messages", { session_id })
        .catch(emptyWhenUnknown)
        .catch(unlessAbsent);
      const messages = tree === undefined ? turn?.pending_entries : withPending(tree.messages, turn?.pending_entries ?? []);
      const missed = (live?.items ?? []).map((item) => item.event as AgentEvent);
      const cursor = { epoch: live?.epoch, seq: live?.seq ?? 0 };
      const snapshot = { messages, turn: turn === undefined ? this.view.value.turn : turn };
      this.view.value = fromSnapshot(this.view.value, snapshot, cursor, missed);
      this.loaded.value = true;
      this.problem.value = null;
    } catch (error) {
      this.problem.value = advice(error);
    }
  }

  /** Where to read events from: all of them when a running turn must be rebuilt, else only what is new. */
  #from(): { since: number; epoch?: string } {
    const { cursor, turn, stale } = this.view.value;
    if (!this.loaded.value || stale || !isOver(turn) || cursor.epoch === undefined) return { since: 0 };
    return { since: cursor.seq, epoch: cursor.epoch };
  }

  /** Asks for what was missed since the cursor. Also renews the subscription, should its keeper have restarted. */
  async beat(): Promise<void> {
    if (this.#loading !== undefined || !this.loaded.value) return this.load();
    const { iii, browser_id, session_id } = this.#deps;
    const { epoch, seq } = this.view.value.cursor;
    const cursor = epoch === undefined ? { since: seq } : { since: seq, epoch };
    const answer = await call<typeof Harness.uiSubscribe>(iii, "ui::subscribe", { browser_id, session_id, ...cursor });
    if (answer.gap === true || (epoch !== undefined && answer.epoch !== epoch)) return this.load();
    for (const item of answer.items ?? []) this.take({ event: item.event as AgentEvent, seq: item.seq, epoch: answer.epoch });
  }

  /** Takes one pushed event; many are applied at once. */
  take(one: Push): void {
    this.#waiting.push(one);
    this.#flushTimer ??= setTimeout(() => this.#flush(), FLUSH_MS);
  }

  /** Pushes were dropped on the way: reads again. */
  lost(): void {
    this.#settle(0);
  }

  /** Posts a message. Rejects when it was not accepted; it is then no longer shown. */
  async send(text: string, choice: Choice): Promise<void> {
    const message: AgentMessage = { role: "user", content: [{ type: "text", text }], timestamp: this.#deps.date() };
    this.view.value = post(this.view.value, message, "sending");
    try {
      const body = await startTurn(this.#deps.iii, this.session_id, newId(), message, choice);
      this.view.value = post(this.view.value, message, body.queued === true ? "queued" : "accepted");
      this.#deps.changed();
    } catch (error) {
      this.view.value = unpost(this.view.value, message);
      throw error;
    }
  }

  /** Stops the running turn. */
  stop() {
    return call<typeof Turn.runAbort>(this.#deps.iii, "run::abort", { session_id: this.session_id, reason: "stopped in the console" });
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#flushTimer);
    clearTimeout(this.#settleTimer);
    const { iii, browser_id, session_id } = this.#deps;
    // Not answered, it ends by itself: a push that nobody takes evicts the page.
    call<typeof Harness.uiUnsubscribe>(iii, "ui::unsubscribe", { browser_id, session_id }).catch(() => undefined);
  }

  #flush(): void {
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    if (this.#loading !== undefined || this.#closed || this.#waiting.length === 0) return;
    const pushes = this.#waiting;
    this.#waiting = [];
    this.view.value = pushes.reduce(applyPush, this.view.value);
    if (this.view.value.stale) this.#settle(0);
    const moves = pushes.flatMap(({ event }) => (event.type === "turn_state_changed" ? [event] : []));
    if (moves.length === 0) return;
    this.#deps.changed();
    if (moves.some((event) => event.event_type === "state:created") || isOver(this.view.value.turn)) this.#settle();
  }

  /** Reads the snapshot once things have calmed down. */
  #settle(delay = SETTLE_MS): void {
    if (this.#closed) return;
    clearTimeout(this.#settleTimer);
    this.#settleTimer = setTimeout(() => void this.load(), delay);
  }
}

/** A session that was never written to has no transcript; that is an empty one. */
type Stored = { readonly entry_id: string; readonly message: AgentMessage };

/** The transcript with what is not in it yet behind it. */
function withPending(stored: readonly Stored[], pending: readonly Stored[]): Stored[] {
  const known = new Set(stored.map((entry) => entry.entry_id));
  return [...stored, ...pending.filter((entry) => !known.has(entry.entry_id))];
}

function emptyWhenUnknown(error: unknown): { messages: [] } {
  if (advice(error).code === "session_not_found") return { messages: [] };
  throw error;
}

/** A layer that nobody serves costs its own part of the session and no other. */
function unlessAbsent(error: unknown): undefined {
  if (isAbsent(error)) return undefined;
  throw error;
}
