// The whole stack on another store: what the embedded file keeps, a database server keeps as well.
import { afterAll, describe, expect, test } from "vitest";
import { startPostgres } from "../../../engine/test/storage/postgres.ts";
import { startStack, until } from "../support/stack.ts";
import { ended, parked, post, resolve, transcript } from "../support/turns.ts";

const server = await startPostgres().catch((thrown: Error) => thrown);
const why = server instanceof Error ? ` (skipped: ${server.message})` : "";

describe.skipIf(server instanceof Error)(`on PostgreSQL${why}`, () => {
  if (server instanceof Error) return;
  afterAll(() => server.stop());
  const on = (url: string) => (shipped: string) => shipped.replace(/^engine:.*$/m, (line) => `${line}\n  store: ${url}`);

  test("a turn, its session and a parked call outlive `kill -9` of the engine; a second engine is refused meanwhile", async () => {
    const url = await server.database();
    await using stack = await startStack({ config: on(url) });
    expect(stack.output().stdout).toContain(url.replace(/\/\/.*@/, "//"));
    expect(stack.output().stdout).not.toContain("password");
    await post(stack, "said", "say hello");
    expect(await ended(stack, "said")).toMatchObject({ state: "stopped" });
    await post(stack, "held", 'call shell::fs::ls {"path":"."}');
    const [before] = await parked(stack, "held");

    await expect(startStack({ config: on(url) })).rejects.toThrow(/in use/);
    await stack.kill9("engine");
    await using again = await stack.restart();
    expect((await transcript(again, "said")).text).toContain("hello");
    const [held] = await parked(again, "held");
    expect(held).toEqual({ ...before, remaining_ms: expect.any(Number) });
    if (held === undefined) throw new Error("unreachable");
    expect(await resolve(again, held, "allow", { args_sha256: held.args_sha256 })).toEqual({ ok: true });
    expect(await ended(again, "held")).toMatchObject({ state: "stopped" });
    const { results } = await transcript(again, "held");
    expect(results).toMatchObject([{ is_error: false }]);
  });

  test("SIGKILL in the middle of many turns: every turn that was accepted ends", async () => {
    await using stack = await startStack({ config: on(await server.database()) });
    const accepted: string[] = [];
    const lanes = Array.from({ length: 24 }, async (_, n) => {
      await post(stack, `s${n}`, "say one two three");
      accepted.push(`s${n}`);
    });
    const posting = Promise.allSettled(lanes);
    await until("some turns to be accepted", () => accepted.length >= 6 || undefined);
    await stack.kill9("engine");
    await posting;
    await using again = await stack.restart();
    for (const session of accepted) expect(await ended(again, session)).toMatchObject({ state: "stopped" });
  });
});
