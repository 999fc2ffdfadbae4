// Payloads like real ones: records of mixed fields, not one long text, so that their JSON costs what JSON costs.

export type Payload = Record<string, unknown> & { seq: number };

export const SIZES = { "100 B": 100, "10 KB": 10_240, "1 MB": 1_048_576 } as const;

function record(index: number): object {
  const lines = [{ sku: `part-${index % 97}`, count: index % 7, price: index * 1.25 }];
  return { key: `order-${index}`, open: index % 3 === 0, weight: index / 3, lines, note: "zwölf Stück, bitte früh liefern", next: null };
}

/** A maker of payloads of about `bytes` bytes; each carries the number of its call. */
export function payloads(bytes: number): (seq: number) => Payload {
  if (bytes < 500) return (seq) => ({ seq, topic: "orders", value: 12.5, tags: ["new", "paid"], note: "ü".padEnd(bytes - 75, "-") });
  const rows: object[] = [];
  for (let size = 20; size < bytes; size += JSON.stringify(rows.at(-1)).length + 1) rows.push(record(rows.length));
  return (seq) => ({ seq, rows });
}

/** @throws Error when an answer belongs to another call. */
export function checkSeq(answer: unknown, seq: number): void {
  const got = (answer as Payload | null)?.seq;
  if (got !== seq) throw new Error(`the answer of call ${seq} carries ${got}`);
}
