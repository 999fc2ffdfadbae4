// Runs the effects of one session's turn and says what came of each. Holds what they share: the request and the transcript so far.
import { BusError } from "@iii/sdk";
import type { Deps } from "../deps.ts";
import type { Effect, TurnEvent } from "../machine/events.ts";
import type { PendingEntry, RunRequest, TurnCall, TurnRecord } from "../machine/record.ts";
import { mergeEntries } from "./context.ts";
import { generate } from "./generate.ts";
import { invoke, judge, type Place, probe, recheck } from "./invoke.ts";

export class Performer {
  readonly #deps: Deps;
  readonly #sid: string;
  #request: RunRequest | undefined;
  #entries: PendingEntry[] | undefined;

  constructor(deps: Deps, sid: string) {
    this.#deps = deps;
    this.#sid = sid;
  }

  /** Reads what every effect will need. That it is missing is told when an effect needs it. */
  async prepare(): Promise<void> {
    this.#request = (await this.#deps.store.request(this.#sid)).value;
  }

  /** New entries of the turn: they belong to the context from now on, stored or not. */
  heard(pending: readonly PendingEntry[]): void {
    if (this.#entries !== undefined) this.#entries = mergeEntries(this.#entries, pending);
  }

  /** `held` tells which entries the stored record has: only those may go to the transcript. */
  async perform(effect: Effect, record: TurnRecord, signal: AbortSignal, held: (entry: PendingEntry) => boolean): Promise<TurnEvent> {
    switch (effect.type) {
      case "generate":
        return await this.#generate(record, signal);
      case "append":
        return await this.#append(record, effect.entries.filter(held));
      default:
        return await this.#performCall(effect.call, effect.key, this.#place(record), signal);
    }
  }

  async #performCall(call: TurnCall, answers: string, place: Place, signal: AbortSignal): Promise<TurnEvent> {
    const { clock } = this.#deps;
    switch (call.phase) {
      case "planned":
        return { type: "judged", answers, verdict: await judge(call, place, this.#deps, signal), now: clock.now() };
      case "released":
        return { type: "rechecked", answers, refused: await recheck(call, place, this.#deps, signal), now: clock.now() };
      case "started":
        return { type: "returned", answers, outcome: await invoke(call, place, this.#deps, signal), now: clock.now() };
      case "probing":
        return { type: "probed", answers, answer: await probe(call, place, this.#deps, signal), now: clock.now() };
      default:
        throw new BusError("invocation_error", `a call in phase ${call.phase} asks for nothing`);
    }
  }

  async #generate(record: TurnRecord, signal: AbortSignal): Promise<TurnEvent> {
    const { request } = this.#place(record);
    this.#entries ??= await this.#deps.transcripts[record.transcript].load(this.#sid);
    this.#entries = mergeEntries(this.#entries, record.pending_entries);
    return await generate({ record, request, entries: this.#entries }, this.#deps, signal);
  }

  async #append(record: TurnRecord, entries: readonly PendingEntry[]): Promise<TurnEvent> {
    await this.#deps.transcripts[record.transcript].append(this.#sid, entries);
    return { type: "appended", entry_ids: entries.map((entry) => entry.entry_id), now: this.#deps.clock.now() };
  }

  #place(record: TurnRecord): Place {
    if (this.#request === undefined) throw new BusError("store_corrupt", `session ${this.#sid} has a turn and no run request`);
    return { record, request: this.#request };
  }
}
