// Peers that misbehave: a policy that mumbles, a provider that babbles, a model that asks for nonsense, a vendor's server that breaks.
// Each costs its own call or turn, says why, and lets nothing run that nobody allowed.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AssistantMessage } from "@iii/contracts";
import { type ChannelRef, type ChannelWriter, type Client, connect } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { anthropic, asAnthropic, KEY, type ModelServer, modelServer, wire } from "../support/model-server.ts";
import { rawSocket } from "../support/raw.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { ended, pending, post, programEntry, readLedger, textOf, transcript } from "../support/turns.ts";

let stack: Stack;
let server: ModelServer;
let rogue: Client;

beforeAll(async () => {
  server = await modelServer();
  stack = await startStack({
    config: (shipped) =>
      shipped
        .replace("  - name: provider-anthropic\n", "  - name: provider-anthropic\n    config: { max_retries: 0 }\n")
        .replace(
          "  - name: turn-orchestrator\n",
          "  - name: turn-orchestrator\n    config: { startup_grace_ms: 0, policy_timeout_ms: 2500 }\n",
        )
        .concat(programEntry("ledger", "support/ledger-worker.ts")),
    permissions: "version: 1\nrules:\n  - ledger::append\n  - rogue::tool\n",
    env: { ...asAnthropic(server), LEDGER: "ledger.txt" },
  });
  rogue = connect({ dialer: wsDialer(stack.url), name: "rogue" });
  rogue.registerFunction("provider::rogue::stream", async (input) => {
    const { writer_ref, messages } = input as { writer_ref: ChannelRef; messages: { content: { text: string }[] }[] };
    const writer = rogue.openWriter(writer_ref);
    const act = messages.length === 1 ? ACTS[messages[0]?.content[0]?.text ?? ""] : undefined;
    await (act ?? done)(writer).catch(() => undefined);
    await writer.close().catch(() => undefined);
    return { ok: true };
  });
  await rogue.trigger("engine::functions::list", {});
});
afterAll(async () => {
  await rogue?.close({ drain_ms: 0 });
  await stack?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

const ledger = (note: string) => readLedger(join(stack.folder, "ledger.txt")).filter(([, , , noted]) => noted === note);

function message(content: unknown[], stop_reason = "end"): { type: "done"; message: AssistantMessage } {
  const about = { model: "m", provider: "rogue", timestamp: 1 };
  return { type: "done", message: { role: "assistant", content, stop_reason, ...about } as AssistantMessage };
}
const text = (words: string) => ({ type: "text", text: words });
const trigger = (id: string, args: unknown) => ({ type: "function_call", id, function_id: "agent_trigger", arguments: args });
const append = (id: string, note: string) => trigger(id, { function: "ledger::append", payload: { note } });
const send = (writer: ChannelWriter, frame: unknown) =>
  writer.send(typeof frame === "string" || frame instanceof Uint8Array ? frame : JSON.stringify(frame));
const done = (writer: ChannelWriter) => send(writer, message([text("fine")]));

const IDS = ["a/b", "a/b", "ünd", "", "x".repeat(300), "a b", "same", "same"];
const NONSENSE = [
  trigger("n1", null),
  trigger("n2", { payload: { note: "nonsense" } }),
  trigger("n3", { function: "ledger::äppend", payload: { note: "nonsense" } }),
  trigger("n4", { function: "ledger::append", payload: ["nonsense"] }),
  trigger("n5", { function: "ledger::append", payload: "not an object" }),
  trigger("n6", { function: "ledger::append", payload: {} }),
  { ...trigger("n7", { note: "nonsense" }), function_id: "ledger::append" },
  trigger("n8", { function: "no::such", payload: {} }),
  trigger("n9", { function: " ledger::append", payload: { note: "nonsense" } }),
];

const ACTS: Record<string, (writer: ChannelWriter) => Promise<void>> = {
  async babble(writer) {
    const frames = [
      "not json",
      "[]",
      "null",
      '{"type":"nonsense"}',
      '{"type":"text_delta"}',
      '{"type":"text_delta","delta":5}',
      Buffer.from([0, 255]),
      '{"type":"done"}',
      '{"type":"done","message":{"role":"user"}}',
    ];
    for (const frame of frames) await send(writer, frame);
    await done(writer);
  },
  async twice(writer) {
    await done(writer);
    await send(writer, message([append("late", "twice")], "function_call"));
  },
  async unfinished(writer) {
    await send(writer, { type: "text_delta", block: 0, delta: "half" });
    await send(writer, { type: "functioncall_delta", block: 1, delta: '{"function":"ledger::append","payload":{"note":"unfinished"}}' });
  },
  ids: (writer) =>
    send(
      writer,
      message(
        IDS.map((id) => append(id, "ids")),
        "function_call",
      ),
    ),
  nonsense: (writer) => send(writer, message(NONSENSE, "function_call")),
  large: (writer) => send(writer, message([text("ä".repeat(1_000_000))])),
  surrogates: (writer) =>
    send(writer, message([text("a\ud800b"), trigger("s1", { function: "rogue::tool", payload: { note: "\udc00" } })], "function_call")),
};

const ask = (session_id: string) => post(stack, session_id, session_id, { provider: "rogue", model: "m" });

describe("a provider", () => {
  test("frames that are none are skipped; the answer behind them counts", async () => {
    await ask("babble");
    expect(await ended(stack, "babble")).toMatchObject({ state: "stopped", stop_reason: "end" });
    expect(textOf((await transcript(stack, "babble")).messages[1])).toBe("fine");
  });

  test("what comes behind the end does not count", async () => {
    await ask("twice");
    expect(await ended(stack, "twice")).toMatchObject({ state: "stopped", stop_reason: "end" });
    expect((await transcript(stack, "twice")).calls).toEqual([]);
    expect(ledger("twice")).toEqual([]);
  });

  test("an answer without an end is an error that says so, keeps its text and runs no call", async () => {
    await ask("unfinished");
    expect(await ended(stack, "unfinished")).toMatchObject({
      stop_reason: "error",
      error: { message: expect.stringContaining("stream cut") },
    });
    const { messages, calls } = await transcript(stack, "unfinished");
    expect([textOf(messages[1]), calls]).toEqual(["half", []]);
    expect(ledger("unfinished")).toEqual([]);
  });

  test("call ids that are no keys or not unique are replaced: every call runs once and has its own result", async () => {
    await ask("ids");
    expect(await ended(stack, "ids")).toMatchObject({ state: "stopped" });
    const { calls, results } = await transcript(stack, "ids");
    expect(new Set(calls.map((call) => call.id)).size).toBe(IDS.length);
    for (const call of calls) expect(call.id).toMatch(/^[\x21-\x2e\x30-\x7e]{1,128}$/);
    expect(results.map((result) => result.function_call_id)).toEqual(calls.map((call) => call.id));
    const starts = ledger("ids").filter(([kind]) => kind === "start");
    expect(starts).toHaveLength(IDS.length);
    expect(new Set(starts.map(([, , key]) => key)).size).toBe(IDS.length);
  });

  test("calls that make no sense are answered one by one with what is wrong; none runs, none waits", async () => {
    await ask("nonsense");
    expect(await ended(stack, "nonsense")).toMatchObject({ state: "stopped" });
    const { results } = await transcript(stack, "nonsense");
    expect(results).toHaveLength(NONSENSE.length);
    for (const result of results) expect(result.is_error).toBe(true);
    const said = results.map((result) => result.text);
    for (const [index, part] of [
      "must be one JSON object",
      "'function' is missing",
      "printable ASCII",
      "must be a JSON object",
      "must be a JSON object",
      "'note'",
      "there is no tool 'ledger::append'",
      "nobody serves 'no::such'",
      "printable ASCII",
    ].entries()) {
      expect(said[index]).toContain(part);
    }
    expect(await pending(stack, "nonsense")).toEqual([]);
    expect(ledger("nonsense")).toEqual([]);
  });

  test("a very large answer arrives whole", async () => {
    await ask("large");
    await ended(stack, "large");
    expect(textOf((await transcript(stack, "large")).messages[1])).toBe("ä".repeat(1_000_000));
  });

  test("half characters of a model, a tool and a person are made whole before they are kept", async () => {
    rogue.registerFunction("rogue::tool", (input) => ({ noted: input, text: "x\ud99c" }));
    await rogue.trigger("engine::functions::list", {});
    await ask("surrogates");
    expect(await ended(stack, "surrogates")).toMatchObject({ state: "stopped", stop_reason: "end" });
    await post(stack, "person", "say a\ud800b");
    await ended(stack, "person");
    for (const session_id of ["surrogates", "person"]) {
      const { messages } = await transcript(stack, session_id);
      expect(messages.length).toBeGreaterThan(1);
      expect(JSON.stringify(messages)).not.toMatch(/\\ud[89a-f]/i);
    }
  });
});

describe("a policy", () => {
  test.each([
    ["null", "null"],
    ["a word", '"allow"'],
    ["yes", "true"],
    ["a list", '[{"decision":"allow"}]'],
    ["an unknown decision", '{"decision":"maybe"}'],
    ["almost allow", '{"decision":"Allow"}'],
    ["allow in another place", '{"result":{"decision":"allow"}}'],
    ["no JSON", '{"decision" "allow"}'],
    ["an error", undefined],
    ["nothing, ever", ""],
  ])("that answers %s: the call is refused as gate_unavailable, and does not run", async (name, answer) => {
    using socket = await rawSocket(await stack.urlOf("policy"));
    socket.ws.on("message", (data) => {
      const { type, invocation_id } = JSON.parse(String(data)) as { type: string; invocation_id: string };
      if (type !== "invokefunction" || answer === "") return;
      const head = `{"type":"invocationresult","invocation_id":"${invocation_id}","function_id":"policy::check_permissions"`;
      socket.send(answer === undefined ? `${head},"error":{"code":"oops","message":"no"}}` : `${head},"result":${answer}}`);
    });
    socket.send('{"type":"registerfunction","id":"policy::check_permissions"}');
    await socket.call("engine::functions::list", {});
    const session_id = `policy-${name.replace(/\W/g, "-")}`;
    await post(stack, session_id, 'call ledger::append {"note":"policy"}');
    expect(await ended(stack, session_id)).toMatchObject({ state: "stopped" });
    expect((await transcript(stack, session_id)).results).toMatchObject([{ is_error: true, details: { denied_by: "gate_unavailable" } }]);
    expect(ledger("policy")).toEqual([]);
  });

  test("when it is gone, the policy before it decides again", async () => {
    await post(stack, "again", 'call ledger::append {"note":"again"}');
    expect(await ended(stack, "again")).toMatchObject({ state: "stopped" });
    expect((await transcript(stack, "again")).results).toMatchObject([{ is_error: false }]);
    expect(ledger("again").filter(([kind]) => kind === "start")).toHaveLength(1);
  });
});

describe("a vendor's server", () => {
  const html = { "content-type": "text/html" };
  const sse = { "content-type": "text/event-stream" };
  const line = (event: object) => `data: ${JSON.stringify(event)}\n\n`;

  test.each([
    [
      "401 that quotes the key",
      [{ status: 401, body: `{"type":"error","error":{"type":"authentication_error","message":"bad key ${KEY}"}}` }],
      "auth",
    ],
    [
      "500 in HTML",
      [
        { status: 500, headers: html, body: `<b>${KEY}</b>` },
        { status: 500, headers: html, body: "<b>oh</b>" },
      ],
      "500",
    ],
    ["a redirect", [{ status: 302, headers: { location: "http://127.0.0.1:9/" } }], "302"],
    [
      "200 in HTML",
      [
        { status: 200, headers: html, body: "<html>" },
        { status: 200, headers: html, body: "<html>" },
      ],
      "",
    ],
    [
      "nothing",
      [
        { status: 200, headers: sse, body: "" },
        { status: 200, headers: sse, body: "" },
      ],
      "cut",
    ],
    [
      "an endless line",
      [
        { status: 200, headers: sse, body: `data: ${"x".repeat(2_000_000)}` },
        { status: 200, headers: sse, body: "data: x" },
      ],
      "",
    ],
    [
      "bytes that are no text",
      [
        { status: 200, headers: sse, body: Buffer.alloc(65_536, 0xff) },
        { status: 200, headers: sse, body: Buffer.alloc(16, 0x80) },
      ],
      "",
    ],
  ])("that answers %s ends the turn as an error that says so, without the key", async (name, canned, says) => {
    server.canned.splice(0, server.canned.length, ...canned);
    const session_id = `vendor-${name.replace(/\W/g, "-")}`;
    await post(stack, session_id, "hello", anthropic);
    const view = await ended(stack, session_id);
    expect(view).toMatchObject({ stop_reason: "error" });
    expect(view.error?.message).not.toBe("");
    expect(view.error?.message).toContain(says);
    expect(JSON.stringify([view, await transcript(stack, session_id)])).not.toContain(KEY);
    server.canned.length = 0;
  });

  test.each([
    ["is not JSON", "data: {not json\n\n"],
    ["is no event of the wire", "data: [1]\n\n"],
    ["is of a type nobody knows", 'event: nonsense\ndata: {"type":"nonsense"}\n\n'],
  ])("K1.7 an answer in which something %s is an error that keeps its text; comments count for nothing", async (title, noise) => {
    const events = [wire.start, ...wire.text("fine"), wire.close(), ...wire.stop("end_turn")].map(line);
    const session_id = `noise-${title.replace(/\W/g, "-")}`;
    for (const [id, between, stop_reason] of [
      [session_id, `: a comment\n\n${noise}`, "error"],
      [`${session_id}-comments`, ": a comment\n\nevent: ping\ndata:\n\n", "end"],
    ] as const) {
      server.canned.push({ status: 200, headers: sse, body: [...events.slice(0, 3), between, ...events.slice(3)].join("") });
      await post(stack, id, "hello", anthropic);
      expect(await ended(stack, id)).toMatchObject({ state: "stopped", stop_reason });
    }
  });
});

test("after all this the key stands in no file, no log, no trace and no stream", async () => {
  const { stdout, stderr } = stack.output();
  expect(stdout + stderr).not.toContain(KEY);
  for (const name of readdirSync(stack.folder, { recursive: true, withFileTypes: true })) {
    if (name.isFile()) expect(readFileSync(join(name.parentPath, name.name)).includes(KEY), name.name).toBe(false);
  }
  for (const id of ["engine::traces::list", "engine::logs::list"]) {
    expect(JSON.stringify(await stack.trigger(id, {}).catch(() => null))).not.toContain(KEY);
  }
  expect((await stack.health()).status).toBe(200);
});
