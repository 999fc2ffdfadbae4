// What is wrong with a request is said to whoever sent it: a code, the field, the way out. Nothing else is lost.
// One stack for all: every test ends with the proof that what was accepted before its bad input is still there.
import type { BusError } from "@iii/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Kept, keep } from "../support/kept.ts";
import { rawSocket } from "../support/raw.ts";
import { type Stack, startStack, until } from "../support/stack.ts";
import { ended, parked, pending, post, resolve, stateOf, transcript, userMessage } from "../support/turns.ts";

let stack: Stack;
let kept: Kept;

beforeAll(async () => {
  stack = await startStack({
    config: (shipped) =>
      shipped.replace("  - name: turn-orchestrator\n", "  - name: turn-orchestrator\n    config: { startup_grace_ms: 200 }\n"),
  });
  kept = await keep(stack);
});
afterAll(async () => stack?.[Symbol.asyncDispose]());

async function refusal(call: Promise<unknown>): Promise<BusError> {
  return call.then(
    (answer) => {
      throw new Error(`it was accepted: ${JSON.stringify(answer)}`);
    },
    (error: BusError) => error,
  );
}

async function overHttp(body: unknown): Promise<{ status: number; error: { code: string; message: string } }> {
  const response = await fetch(`${stack.httpUrl}/harness/trigger`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, ...((await response.json()) as { error: { code: string; message: string } }) };
}

const run = (session_id: string, more: Record<string, unknown> = {}) => ({
  session_id,
  payload: { provider: "scripted", model: "demo", messages: [userMessage("say hello")], ...more },
});

describe("calls", () => {
  test("a function that nobody serves is named, and the next call on the same socket works", async () => {
    using socket = await rawSocket(stack.url);
    const { error } = await socket.call("no::such", {});
    expect(error).toMatchObject({ code: "function_not_found" });
    expect(error?.message).toContain("'no::such'");
    expect((await socket.call("state::get", { scope: "kept", key: "k" })).result).toEqual({ n: 1 });
    await kept.unharmed();
  });

  test.each([
    ["a worker's function", "run::start", { session_id: "s", provider: "scripted", model: 5 }, "invalid_payload", "'model'", "a text"],
    ["a built-in", "state::set", { scope: "s", key: 7 }, "deserialization_error", "'key'", "a text"],
    [
      "a nested field",
      "run::start",
      { session_id: "s", provider: "scripted", model: "demo", messages: [{ role: "nobody" }] },
      "invalid_payload",
      "'messages.0",
      "",
    ],
    ["no object at all", "run::start", "text", "invalid_payload", "the payload", "object"],
    [
      "an enum",
      "run::start",
      { session_id: "s", provider: "scripted", model: "demo", if_busy: "wait" },
      "invalid_payload",
      "'if_busy'",
      "reject",
    ],
  ])("an invalid payload: %s says which field and what was expected", async (_what, id, payload, code, field, expected) => {
    const error = await refusal(stack.trigger(id, payload));
    expect(error.code).toBe(code);
    expect(error.message).toContain(field);
    expect(error.message).toContain(expected);
    await kept.unharmed();
  });

  test.each([
    ["with a slash", "a/b"],
    ["not ASCII", "sitzüng"],
    ["with a space", "a b"],
    ["empty", ""],
    ["too long", "s".repeat(129)],
    ["a look-alike", "ａ"],
  ])("a session id %s is refused where it enters, over the bus and over HTTP", async (_what, id) => {
    for (const call of [
      stack.trigger("harness::trigger", run(id)),
      stack.trigger("run::start", { session_id: id, provider: "scripted", model: "demo" }),
      stack.trigger("run::abort", { session_id: id }),
      stack.trigger("turn::get_state", { session_id: id }),
      stack.trigger("session-tree::ensure", { session_id: id }),
      stack.trigger("session-tree::messages", { session_id: id }),
    ]) {
      const error = await refusal(call);
      expect(error.code).toBe("invalid_payload");
      expect(error.message).toContain("session_id");
      expect(error.message).toContain("1 to 128 printable ASCII characters");
    }
    const answer = await overHttp(run(id));
    expect(answer).toMatchObject({ status: 400, error: { code: "invalid_payload" } });
    expect(answer.error.message).toContain("session_id");
    await kept.unharmed();
  });

  test.each([
    ["with a slash", "a/b"],
    ["not ASCII", "ünd"],
  ])("a call id %s is no decision about anything", async (_what, id) => {
    const answer = await stack.trigger<{ message: string }>("approval::resolve", {
      session_id: "kept",
      function_call_id: id,
      decision: "allow",
    });
    expect(answer).toMatchObject({ ok: false, error: "invalid_payload" });
    expect(answer.message).toContain("function_call_id");
    await kept.unharmed();
  });

  const at = { scope: "kept", key: "k" };
  const late = { queue: "turn-step", function_id: "turn::get_state" };
  test.each([
    ["a queue that is not there", "engine::queue::enqueue", { ...late, queue: "nowhere", data: {} }, /'nowhere'/],
    ["a message without its group", "engine::queue::enqueue", { ...late, data: {} }, /session_id/],
    ["a key with half a character", "state::set", { ...at, key: "k\ud800", value: 1 }, /key/],
    ["a value over the limit", "state::set", { ...at, key: "big", value: "x".repeat(17_000_000) }, /\d{7,}/],
    [
      "a transaction with one bad part",
      "state::transact",
      { writes: [{ ...at, value: 2 }], enqueue: [{ ...late, queue: "nowhere", data: {} }] },
      /'nowhere'/,
    ],
    [
      "a transaction that writes a key twice by halves",
      "state::transact",
      { writes: [{ ...at, value: 2 }, { scope: "kept" }] },
      /writes\.1\.key/,
    ],
    ["a cursor that is none", "stream::read", { stream_name: "s", group_id: "g", since: -1 }, /since/],
    [
      "a trigger of a broken config",
      "engine::register_trigger",
      { trigger_type: "state", function_id: "turn::get_state", config: { scope: 5 } },
      /scope/,
    ],
    [
      "an http path that is none",
      "engine::register_trigger",
      { trigger_type: "http", function_id: "turn::get_state", config: { http_method: "GET" } },
      /api_path/,
    ],
    ["a function id that is no id", "engine::functions::info", { function_id: 5 }, /function_id/],
    ["a worker that is not there", "worker::restart", { name: "nobody" }, /nobody/],
  ])("%s: refused by name, and nothing of it is done", async (_what, id, payload, says) => {
    const error = await refusal(stack.trigger(id, payload));
    expect(error.code).not.toBe("invocation_failed");
    expect(`${error.message} ${JSON.stringify(error.details ?? null)}`).toMatch(says);
    await kept.unharmed();
  });

  test("a body that is no JSON, and one without its parts, are 400 with the reason", async () => {
    expect(await overHttp("{not json")).toMatchObject({ status: 400, error: { code: "invalid_payload" } });
    const answer = await overHttp({});
    expect(answer).toMatchObject({ status: 400, error: { code: "invalid_payload" } });
    expect(answer.error.message).toContain("payload");
    await kept.unharmed();
  });
});

describe("runs", () => {
  test("an unknown provider is refused with the ones that are connected; nothing is stored", async () => {
    const error = await refusal(stack.trigger("harness::trigger", run("u1", { provider: "skripted" })));
    expect(error).toMatchObject({ code: "provider_unknown", details: { known: ["anthropic", "openai", "scripted"] } });
    expect(error.message).toContain("provider::skripted::stream");
    expect(error.message).toContain("scripted");
    expect(await overHttp(run("u1", { provider: "skripted" }))).toMatchObject({ status: 400, error: { code: "provider_unknown" } });
    expect(await stateOf(stack, "u1")).toBeNull();
    await kept.unharmed();
  });

  test("an unknown model is refused with the nearest ids; nothing is stored", async () => {
    const error = await refusal(stack.trigger("harness::trigger", run("u2", { model: "dmo" })));
    expect(error).toMatchObject({ code: "model_unknown", details: { near: ["demo"] } });
    expect(error.message).toContain("demo");
    const other = await refusal(stack.trigger("harness::trigger", run("u2", { provider: "anthropic", model: "claude-opus-5.5" })));
    expect(other.code).toBe("model_unknown");
    expect(other.message).toContain("claude-opus-5-5");
    expect(await overHttp(run("u2", { model: "dmo" }))).toMatchObject({ status: 400, error: { code: "model_unknown" } });
    expect(await stateOf(stack, "u2")).toBeNull();
    await kept.unharmed();
  });

  test("a missing credential ends the turn with what to set; the session goes on with another provider", async () => {
    await post(stack, "nokey", "hello", { provider: "anthropic", model: "claude-opus-5-5" });
    const view = await ended(stack, "nokey");
    const text = JSON.stringify([view, (await transcript(stack, "nokey")).messages]);
    expect(text).toContain("credential_missing");
    expect(text).toContain("ANTHROPIC_API_KEY");
    expect(text).toContain("auth::set_token");
    await post(stack, "nokey", "say still here");
    await until("the next turn to end", async () => (await transcript(stack, "nokey")).text.includes("still here (demo)") || undefined);
    await kept.unharmed();
  });

  test("if_busy: reject on a busy session is session_busy (409), stores nothing, and may be sent again", async () => {
    const message_id = "m-busy";
    const answer = await post(stack, "kept", "say no", { if_busy: "reject", message_id });
    expect(answer).toMatchObject({ status_code: 409, body: { started: false, reason: "session_busy" } });
    const { status, ...body } = await overHttp({ ...run("kept", { if_busy: "reject" }), message_id });
    expect([status, body]).toEqual([409, { session_id: "kept", started: false, reason: "session_busy" }]);
    expect((await transcript(stack, "kept")).text).not.toContain("say no");
    await kept.unharmed();
  });

  test("the same message id with another message is a conflict, with the same message the first answer", async () => {
    const first = await post(stack, "twice", "say once", { message_id: "m1" });
    const again = await refusal(post(stack, "twice", "say something else", { message_id: "m1" }));
    expect(again.code).toBe("idempotency_conflict");
    expect(first.body.started).toBe(true);
    await ended(stack, "twice");
    await kept.unharmed();
  });
});

describe("decisions", () => {
  test("about an unknown call: not_pending, with a reason", async () => {
    const answer = await resolve(stack, { ...kept.held, function_call_id: "nobody" }, "allow");
    expect(answer).toMatchObject({ ok: false, error: "not_pending", message: expect.stringContaining("no call with these ids") });
    await kept.unharmed();
  });

  test("about an expired call: not_pending that says so, also before the turn has noticed", async () => {
    await post(stack, "late", 'call shell::fs::ls {"path":"."}');
    const [held] = await parked(stack, "late");
    if (held === undefined) throw new Error("unreachable");
    const key = `late/${held.function_call_id}`;
    const row = await stack.trigger<Record<string, unknown>>("state::get", { scope: "approvals", key });
    await stack.trigger("state::set", { scope: "approvals", key, value: { ...row, expires_at: Date.now() - 1 } });
    expect(await pending(stack, "late")).toEqual([]);
    const answer = await resolve(stack, held, "allow");
    expect(answer).toMatchObject({ ok: false, error: "not_pending", message: expect.stringContaining("expired") });
    await stack.trigger("run::abort", { session_id: "late" });
    expect(await ended(stack, "late")).toMatchObject({ state: "stopped", stop_reason: "aborted" });
    await kept.unharmed();
  });

  test("about a decided call: already_decided with the first decision, even after the turn has used it", async () => {
    await post(stack, "done", 'call shell::fs::ls {"path":"."}');
    const [held] = await parked(stack, "done");
    if (held === undefined) throw new Error("unreachable");
    expect(await resolve(stack, held, "deny", { reason: "no", by: "ann" })).toEqual({ ok: true });
    await ended(stack, "done");
    const answer = await resolve(stack, held, "allow");
    expect(answer).toMatchObject({
      ok: false,
      error: "already_decided",
      first: { decision: "deny", reason: "no", by: "operator (claims: ann)" },
    });
    expect((await transcript(stack, "done")).results).toMatchObject([{ is_error: true, details: { denied_by: "user" } }]);
    await kept.unharmed();
  });

  test.each([
    ["an unknown decision", { decision: "perhaps" }, "decision"],
    ["no call", { function_call_id: undefined }, "function_call_id"],
    ["no session", { session_id: undefined }, "session_id"],
  ])("with %s: invalid_payload naming the field, and the call still waits", async (_what, wrong, field) => {
    const { session_id, function_call_id } = kept.held;
    const answer = await stack.trigger<{ message: string }>("approval::resolve", {
      session_id,
      function_call_id,
      decision: "allow",
      ...wrong,
    });
    expect(answer).toMatchObject({ ok: false, error: "invalid_payload" });
    expect(answer.message).toContain(field);
    await kept.unharmed();
  });

  test("about other arguments than those that wait: args_changed, and the call still waits", async () => {
    expect(await resolve(stack, kept.held, "allow", { args_sha256: "0".repeat(64) })).toMatchObject({ ok: false, error: "args_changed" });
    await kept.unharmed();
  });
});

test("A15 what was accepted before all this is done: the held call runs once, and the turn behind it follows", () => kept.finish());
