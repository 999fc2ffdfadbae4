// Something that a stack has accepted and must not lose, whatever is thrown at it meanwhile: a stored value, a held call, a queued turn.
import { expect } from "vitest";
import { type Stack, until } from "./stack.ts";
import { ended, type Held, parked, pending, post, resolve, transcript } from "./turns.ts";

export interface Kept {
  /** The call of session `kept` that waits for a decision. */
  readonly held: Held;
  /** No process and no connection but the sender's was lost, and all that was accepted is there. */
  unharmed(): Promise<void>;
  /** Lets the held call run and the turn behind it follow. */
  finish(): Promise<void>;
}

export async function keep(stack: Stack): Promise<Kept> {
  await stack.trigger("state::set", { scope: "kept", key: "k", value: { n: 1 } });
  await post(stack, "kept", 'call shell::fs::ls {"path":"."}');
  const [held] = await parked(stack, "kept");
  if (held === undefined) throw new Error("unreachable");
  await post(stack, "kept", "say the second turn");
  const alive = async () => {
    const [engine, host, shell] = await Promise.all([stack.pid("engine"), stack.pid("host"), stack.pid("shell")]);
    return { engine, host, shell, connection: stack.iii.worker_id };
  };
  const before = await alive();
  const unharmed = async (): Promise<void> => {
    expect(await alive()).toEqual(before);
    expect((await stack.health()).status).toBe(200);
    expect(await stack.trigger("state::get", { scope: "kept", key: "k" })).toEqual({ n: 1 });
    // The call is the same; what is left of its time is not.
    expect(await pending(stack, "kept")).toEqual([{ ...held, remaining_ms: expect.any(Number) }]);
  };
  const finish = async (): Promise<void> => {
    await unharmed();
    expect(await resolve(stack, held, "allow")).toEqual({ ok: true });
    await until("both turns to end", async () => (await transcript(stack, "kept")).text.includes("the second turn (demo)") || undefined);
    const { calls, results } = await transcript(stack, "kept");
    expect(calls).toHaveLength(1);
    expect(results).toMatchObject([{ function_call_id: calls[0]?.id, is_error: false }]);
    expect(await ended(stack, "kept")).toMatchObject({ state: "stopped", stop_reason: "end" });
  };
  return { held, unharmed, finish };
}
