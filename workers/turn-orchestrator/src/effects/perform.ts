// Runs the effects of one session's turn and says what came of each. Holds what they share: the request and the transcript so far.
import { bytesOf } from "@iii/contracts/storable";
import { BusError } from "@iii/sdk";
import type { TranscriptEntry } from "@iii/worker-session/contract";
import type { Deps } from "../deps.ts";
import type { Effect, TurnEvent } from "../machine/events.ts";
import type { RunRequest, TurnCall, TurnRecord } from "../machine/record.ts";
import { mergeEntries } from "./context.ts";
import { judge, type Place, recheck } from "./gate.ts";
import { generate } from "./generate.ts";
import { invoke, probe } from "./invoke.ts";

/** The turn, as an effect may see it: its record, and its entries before row `next` that the transcript has not confirmed. */
export interface Turn {
  readonly record: TurnRecord;
  pending(next?: number): readonly TranscriptEntry[];
}

export class Performer {
  readonly #deps: Deps;
  readonly #sid: string;
  #request: RunRequest | undefined;
  #entries: TranscriptEntry[] | undefined;

  constructor(deps: Deps, sid: string) {
    this.#deps = deps;
    this.#sid = sid;
  }

  /** Reads what every effect will need. That it is missing is told when an effect needs it. */
  async prepare(): Promise<void> {
    this.#request = (await this.#deps.store.request(this.#sid)).value;
  }

  async perform(effect: Effect, turn: Turn, signal: AbortSignal): Promise<TurnEvent> {
    switch (effect.type) {
      case "generate":
        return await this.#generate(turn, signal);
      case "append":
        return await this.#append(turn, effect.next);
      default:
        return await this.#performCall(effect.call, effect.key, this.#place(turn.record), signal);
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

  async #generate(turn: Turn, signal: AbortSignal): Promise<TurnEvent> {
    const { request } = this.#place(turn.record);
    const pending = turn.pending(); // before the transcript is read: what leaves in between is in it then
    this.#entries = mergeEntries(this.#entries ?? (await this.#deps.transcripts[turn.record.transcript].load(this.#sid)), pending);
    return await generate({ record: turn.record, request, entries: this.#entries }, this.#deps, signal);
  }

  async #append(turn: Turn, next: number): Promise<TurnEvent> {
    const entries = turn.pending(next);
    this.#entries &&= mergeEntries(this.#entries, entries);
    const bytes = entries.reduce((sum, entry) => sum + bytesOf(entry), 0);
    const lost = await this.#deps.transcripts[turn.record.transcript].append(this.#sid, entries);
    for (const one of lost) this.#deps.log.error({ session_id: this.#sid, ...one }, "an entry was refused by the transcript for good");
    return { type: "appended", next, bytes, lost, now: this.#deps.clock.now() };
  }

  #place(record: TurnRecord): Place {
    if (this.#request === undefined) throw new BusError("store_corrupt", `session ${this.#sid} has a turn and no run request`);
    return { record, request: this.#request };
  }
}
