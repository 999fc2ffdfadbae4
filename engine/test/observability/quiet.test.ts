import { expect, test } from "vitest";
import type { StoredSpan } from "../../src/builtin/observability/contract.ts";
import { QuietSpans } from "../../src/builtin/observability/quiet.ts";

const span = (span_id: string, name: string, parent_span_id: string | null = null): StoredSpan => ({
  trace_id: "t",
  span_id,
  parent_span_id,
  name,
  start_time_unix_nano: 1,
  end_time_unix_nano: 2,
  status: "ok",
  attributes: [],
  service_name: "w",
  events: [],
  links: [],
});

test("a stream that runs for hours costs no memory for what is not shown, and shows no more of it", () => {
  const quiet = new QuietSpans();
  let shown = 0;
  for (let n = 0; n < 20_000; n += 1) {
    if (quiet.judge(span(`s${n}`, "call stream::set"))?.shown === true) shown += 1;
    expect(quiet.judge(span(`c${n}`, "execute a::b", `s${n}`))?.shown).toBe(n < 30);
  }
  expect(shown).toBe(30);
  expect(quiet.size).toBeLessThan(3_000);
  expect(quiet.judge(span("s0", "call stream::set"))).toEqual({ shown: true });
});
