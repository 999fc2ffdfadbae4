// All stream groups: their rows, and the order in which their changes reach subscribers.
// A change is told only when it is durable, and never before an earlier change of its group.
import type { Logger } from "@iii/sdk";
import type { EngineHost } from "../../../ports/host.ts";
import type { Row } from "../../../ports/store.ts";
import type { Cause } from "../cause.ts";
import type { Batch, Ledger } from "../ledger.ts";
import { corrupt, decode, numbered, readable, valueText } from "../text.ts";
import { type Entry, Group, type Reading } from "./group.ts";

export interface GroupAddress {
  readonly stream_name: string;
  readonly group_id: string;
}
export interface ItemAddress extends GroupAddress {
  readonly item_id: string;
}
/** A change that subscribers are to be told. */
export interface Told {
  readonly address: GroupAddress;
  readonly entry: Entry;
  readonly epoch: string;
  readonly cause: Cause;
}

interface Outgoing {
  readonly told: Told;
  durable: boolean;
}
interface Place {
  readonly group: Group;
  /** Changes not told yet, in order of their numbers. */
  readonly outgoing: Outgoing[];
}

const SPACE = "stream:";
const spaceOf = ({ stream_name, group_id }: GroupAddress): string => SPACE + JSON.stringify([stream_name, group_id]);

/** Stream and group of a row's space; undefined for a space of another shape. */
function nameOf(space: string): readonly [string, string] | undefined {
  const name: unknown = JSON.parse(space.slice(SPACE.length));
  const [stream, group, ...rest] = Array.isArray(name) ? (name as unknown[]) : [];
  return typeof stream === "string" && typeof group === "string" && rest.length === 0 ? [stream, group] : undefined;
}

function readItem(row: Row) {
  const { space, key, value } = row;
  const item = decode<{ s: number; c: number; v: unknown }>(row, (found) => numbered(found, ["s", "c"]));
  if (nameOf(space) === undefined) throw corrupt(row, "its space names no group");
  return { space, key, ...item, size: value.length };
}

export class StreamHub {
  readonly #streams = new Map<string, Map<string, Place>>();
  /** One for all groups of this engine: a group that nobody has written to yet has it too. */
  readonly #epoch: string;
  readonly #ledger: Ledger;
  readonly #log: Logger;
  readonly #tell: (told: Told) => void;
  readonly #maxBytes: number;

  constructor(host: EngineHost, ledger: Ledger, maxBytes: number, tell: (told: Told) => void) {
    this.#maxBytes = maxBytes;
    this.#epoch = host.random.hex(8);
    this.#ledger = ledger;
    this.#log = host.log;
    this.#tell = tell;
  }

  restore(): void {
    const rows = readable(this.#ledger.rows(SPACE), readItem, (row, error) =>
      this.#log.error({ err: error, space: row.space, key: row.key }, "a stored stream item cannot be read; the others are there"),
    );
    for (const [space, items] of Map.groupBy(rows, (row) => row.space)) {
      const [stream_name = "", group_id = ""] = nameOf(space) ?? [];
      items.sort((left, right) => left.c - right.c);
      const top = items.reduce((highest, { s }) => Math.max(highest, s), 0);
      const { group } = this.#place({ stream_name, group_id }, top);
      for (const { key, s, c, v, size } of items) group.items.set(key, { data: v, seq: s, created: c, ephemeral: false, size });
    }
  }

  get(address: ItemAddress): unknown {
    return this.#find(address)?.group.items.get(address.item_id)?.data;
  }

  list(address: GroupAddress): readonly unknown[] {
    return [...(this.#find(address)?.group.items.values() ?? [])].map(({ data }) => data);
  }

  /** The groups of a stream that hold an item. */
  groups(stream_name: string): readonly string[] {
    return [...(this.#streams.get(stream_name) ?? [])].filter(([, { group }]) => group.items.size > 0).map(([id]) => id);
  }

  streams(): readonly string[] {
    return [...this.#streams.keys()].filter((name) => this.groups(name).length > 0).sort();
  }

  async read(address: GroupAddress, since: number | undefined, epoch: string | undefined): Promise<Reading> {
    const { group } = this.#find(address) ?? { group: new Group(this.#epoch) };
    const reading = group.read(since, epoch);
    await this.settled(address);
    return reading;
  }

  /** The JSON text of an item's data. @throws BusError `VALUE_TOO_LARGE`. */
  text(item_id: string, data: unknown): string {
    return valueText(data, `the item ${item_id}`, this.#maxBytes);
  }

  settled(address: GroupAddress, item_id?: string): Promise<void> {
    return this.#ledger.settled(spaceOf(address), item_id);
  }

  /** Stores an item, whose JSON `text` has been made, as part of `batch`; it is told after the commit. */
  put(batch: Batch, address: ItemAddress, data: unknown, text: string, cause: Cause): void {
    const place = this.#place(address);
    const entry = place.group.put(address.item_id, data, false, text.length);
    const created = place.group.items.get(address.item_id)?.created ?? entry.seq;
    batch.put(spaceOf(address), address.item_id, `{"s":${entry.seq},"c":${created},"v":${text}}`);
    this.#announce(place, address, entry, cause, batch);
  }

  /** Keeps an item in memory only and tells it at once, after what was changed before it. */
  putEphemeral(address: ItemAddress, data: unknown, text: string, cause: Cause): void {
    const place = this.#place(address);
    this.#announce(place, address, place.group.put(address.item_id, data, true, text.length), cause, undefined);
  }

  /** Whether an item is stored: such an item does not become an ephemeral one. */
  isStored(address: ItemAddress): boolean {
    return this.#find(address)?.group.items.get(address.item_id)?.ephemeral === false;
  }

  remove(batch: Batch, address: ItemAddress, cause: Cause): void {
    const place = this.#place(address);
    const entry = place.group.remove(address.item_id);
    if (entry === undefined) return;
    if (!entry.ephemeral) batch.remove(spaceOf(address), address.item_id);
    this.#announce(place, address, entry, cause, entry.ephemeral ? undefined : batch);
  }

  /** Tells a change that is stored nowhere here; `size` is that of its JSON text. */
  note(address: GroupAddress, item_id: string | null, change: Pick<Entry, "data" | "event"> & { size: number }, cause: Cause): void {
    const place = this.#place(address);
    this.#announce(place, address, place.group.note(item_id, change.data, change.event, change.size), cause, undefined);
  }

  drop({ stream_name, group_id, prefix }: GroupAddress & { prefix: string }): void {
    this.#find({ stream_name, group_id })?.group.drop(prefix);
  }

  #announce(place: Place, address: GroupAddress, entry: Entry, cause: Cause, batch: Batch | undefined): void {
    const { stream_name, group_id } = address;
    const out: Outgoing = {
      told: { address: { stream_name, group_id }, entry, epoch: place.group.epoch, cause },
      durable: batch === undefined,
    };
    place.outgoing.push(out);
    batch?.after(() => {
      out.durable = true;
      this.#flush(place);
    });
    if (batch === undefined) this.#flush(place);
  }

  #flush({ outgoing }: Place): void {
    while (outgoing[0]?.durable === true) {
      const next = outgoing.shift();
      if (next !== undefined) this.#tell(next.told);
    }
  }

  #find({ stream_name, group_id }: GroupAddress): Place | undefined {
    return this.#streams.get(stream_name)?.get(group_id);
  }

  #place(address: GroupAddress, seq = 0): Place {
    const groups = this.#streams.get(address.stream_name) ?? new Map<string, Place>();
    this.#streams.set(address.stream_name, groups);
    const place: Place = groups.get(address.group_id) ?? { group: new Group(this.#epoch, seq), outgoing: [] };
    groups.set(address.group_id, place);
    return place;
  }
}
