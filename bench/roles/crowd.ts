// Many workers in one process: each has a connection, and a function or many. Arguments: the bus's URL, how many workers, functions of each.
import { connect } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { play } from "../support/processes.ts";

const [url = "", workers = "1", functions = "1"] = process.argv.slice(2);
const AT_ONCE = 50;

async function join(n: number): Promise<() => Promise<void>> {
  const iii = connect({ dialer: wsDialer(url), name: `crowd-${n}` });
  for (let f = 0; f < Number(functions); f += 1) iii.registerFunction(`crowd::${n}::f${f}`, () => ({ n, f }));
  // Answered after what was registered before it.
  await iii.trigger("engine::functions::info", { function_id: `crowd::${n}::f${Number(functions) - 1}` });
  return () => iii.close({ drain_ms: 0 });
}

const leave: (() => Promise<void>)[] = [];
for (let n = 0; n < Number(workers); n += AT_ONCE) {
  const some = Array.from({ length: Math.min(AT_ONCE, Number(workers) - n) }, (_, i) => join(n + i));
  leave.push(...(await Promise.all(some)));
}
play({}, { leave: () => Promise.all(leave.map((one) => one())).then(() => leave.length) });
