// Frames that no client would send, over real sockets: at most the sender's socket is lost, and everything else goes on.
import { type Client, connect } from "@iii/sdk";
import { wsDialer } from "@iii/sdk/run";
import { registerWorker } from "iii-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Kept, keep } from "../support/kept.ts";
import { rawBytes, rawSocket } from "../support/raw.ts";
import { type Stack, startStack } from "../support/stack.ts";

process.env["OTEL_ENABLED"] = "false";
const FRAME_LIMIT = 1_048_576;
let stack: Stack;
let kept: Kept;

beforeAll(async () => {
  stack = await startStack({
    config: (shipped) => shipped.replace("  queues:\n", `  limits: { max_frame_bytes: ${FRAME_LIMIT} }\n  queues:\n`),
  });
  kept = await keep(stack);
});
afterAll(async () => stack?.[Symbol.asyncDispose]());

const GET = { scope: "kept", key: "k" };
const invoke = (id: string, rest: string) => `{"type":"invokefunction","invocation_id":"${id}",${rest}}`;

describe("malformed", () => {
  test.each([
    ["nothing", ""],
    ["no JSON", "hello"],
    ["a list", "[]"],
    ["null", "null"],
    ["half an object", '{"type":"invokefunction"'],
    ["a string that does not end", '{"type":"invoke'],
    ["brackets that do not pair", '{"type":"invokefunction","data":[}]}'],
    ["two objects", '{"type":"ping"}{"type":"ping"}'],
    ["a type that nobody knows", '{"type":"selfdestruct"}'],
    ["a type that is no text", '{"type":{"a":1}}'],
    ["a type of the prototype", '{"type":"constructor"}'],
    ["a call of nothing", '{"type":"invokefunction"}'],
    ["a call without an id", '{"type":"invokefunction","function_id":"no::such","data":{}}'],
    ["an answer to nothing", '{"type":"invocationresult","invocation_id":"x","result":1}'],
    ["a registration of nothing", '{"type":"registerfunction"}'],
    ["a trigger of nothing", '{"type":"registertrigger","id":"t"}'],
    ["a reattach with nonsense", '{"type":"reattach","previous_worker_id":5,"reattach_token":[]}'],
    ["a key of the prototype", '{"type":"ping","__proto__":{"function_id":"auth::list"}}'],
    ["301 keys", `{"type":"ping",${Array.from({ length: 300 }, (_, n) => `"k${n}":1`).join()}}`],
  ])("%s costs nothing: the same socket works on", async (_what, frame) => {
    using socket = await rawSocket(stack.url);
    socket.send(frame);
    expect((await socket.call("state::get", GET)).result).toEqual({ n: 1 });
    await kept.unharmed();
  });

  test.each([
    ["a key that stands twice", '"function_id":"state::get","function_id":"auth::list","data":{}'],
    ["the same with an escape", '"function_id":"state::get","functio\\u006e_id":"auth::list","data":{}'],
    ["a payload that stands twice", '"function_id":"state::get","data":{},"data":{"scope":"kept","key":"k"}'],
    ["a trailing comma", '"function_id":"state::get","data":{},'],
    ["a malformed number", '"function_id":"state::get","timeout_ms":01,"data":{}'],
    ["a payload that is no value", '"function_id":"state::get","data":undefined'],
    ["no function", '"data":{}'],
    ["an endless function id", `"function_id":"${"f".repeat(257)}","data":{}`],
    ["an action that cannot be followed", '"function_id":"state::get","action":{"type":"enqueue"},"data":{}'],
  ])("a call with %s is answered invalid_frame, and is not made", async (_what, rest) => {
    using socket = await rawSocket(stack.url);
    socket.send(invoke("bad", rest));
    const { error, result } = await socket.answer("bad");
    expect(result).toBeUndefined();
    expect(error).toMatchObject({ code: "invalid_frame" });
    expect(error?.message).not.toBe("");
    expect((await socket.call("state::get", GET)).result).toEqual({ n: 1 });
    await kept.unharmed();
  });

  test.each(["__proto__", "constructor", "prototype", "\\u005f_proto__"])(
    "K2.1 a payload key %s to a built-in is data: it comes back as it was, and changes nothing else",
    async (key) => {
      using socket = await rawSocket(stack.url);
      socket.send(invoke("top", `"function_id":"state::set","data":{"scope":"p","key":"k","value":1,"${key}":{"admin":true}}`));
      socket.send(invoke("deep", `"function_id":"state::set","data":{"scope":"p","key":"k","value":[{"a":{"${key}":1}}]}`));
      for (const id of ["top", "deep"]) expect((await socket.answer(id)).error).toBeUndefined();
      const name = key.replace("\\u005f", "_");
      const { result } = await socket.call("state::get", { scope: "p", key: "k" });
      expect(JSON.stringify(result)).toBe(`[{"a":{"${name}":1}}]`);
      await kept.unharmed();
    },
  );

  test("a prototype key to a worker changes nothing there", async () => {
    using socket = await rawSocket(stack.url);
    socket.send(invoke("w", '"function_id":"turn::get_state","data":{"session_id":"none","__proto__":{"session_id":"kept"}}'));
    expect((await socket.answer("w")).result ?? null).toBeNull();
    await kept.unharmed();
  });

  test("a payload nested 200 000 deep is an answer, not the end of the engine or of a worker", async () => {
    using socket = await rawSocket(stack.url);
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    socket.send(invoke("b", `"function_id":"state::set","data":{"scope":"p","key":"deep","value":${deep}}`));
    socket.send(invoke("w", `"function_id":"turn::get_state","data":${deep}`));
    expect(typeof (await socket.answer("b")).error?.code).toBe("string");
    expect(typeof (await socket.answer("w")).error?.code).toBe("string");
    await kept.unharmed();
  });
});

describe("what a frame carries past the engine", () => {
  const open: { close(): unknown }[] = [];
  const ours = (): Client => {
    const client = connect({ dialer: wsDialer(stack.url), name: "ours" });
    open.push(client);
    return client;
  };
  afterAll(async () => {
    for (const one of open) await one.close();
  });

  test("a payload that is no JSON costs its own call at a worker, which says so", async () => {
    using socket = await rawSocket(stack.url);
    socket.send(invoke("p", '"function_id":"turn::get_state","data":{"session_id" "kept"}'));
    const { error } = await socket.answer("p");
    expect(error).toMatchObject({ code: "deserialization_error" });
    expect((await socket.call("turn::get_state", { session_id: "kept" })).result).toMatchObject({ session_id: "kept" });
    await kept.unharmed();
  });

  test("a result that is no JSON costs its own call at the caller, ours and the official one", async () => {
    using socket = await rawSocket(stack.url);
    socket.send('{"type":"registerfunction","id":"rogue::fn"}');
    socket.ws.on("message", (data) => {
      const frame = JSON.parse(String(data)) as { type: string; invocation_id: string; function_id: string };
      if (frame.type !== "invokefunction") return;
      socket.send(`{"type":"invocationresult","invocation_id":"${frame.invocation_id}","function_id":"rogue::fn","result":{"a" 1}}`);
    });
    await socket.call("engine::functions::list", {});
    const client = ours();
    await expect(client.trigger("rogue::fn", {}, { timeout_ms: 5_000 })).rejects.toMatchObject({ code: "deserialization_error" });
    expect(await client.trigger("state::get", GET)).toEqual({ n: 1 });
    const official = registerWorker(stack.url, { workerName: "official-caller" });
    open.push({ close: () => official.shutdown() });
    await expect(official.trigger({ function_id: "rogue::fn", payload: {}, timeoutMs: 1_000 })).rejects.toThrow();
    expect(await official.trigger({ function_id: "state::get", payload: GET })).toEqual({ n: 1 });
    await kept.unharmed();
  });

  test("an answer to another connection's call is not believed", async () => {
    using victim = await rawSocket(stack.url);
    using thief = await rawSocket(stack.url);
    victim.send('{"type":"registerfunction","id":"victim::fn"}');
    await victim.call("engine::functions::list", {});
    const answer = ours().trigger("victim::fn", {});
    const asked = await victim.next("invokefunction");
    thief.send(`{"type":"invocationresult","invocation_id":"${asked.invocation_id}","result":"stolen"}`);
    await thief.call("state::get", GET);
    victim.send(`{"type":"invocationresult","invocation_id":"${asked.invocation_id}","result":"true"}`);
    expect(await answer).toBe("true");
    await kept.unharmed();
  });
});

describe("oversized and binary", () => {
  test("a frame of the limit passes; one byte more closes its socket with 1009, and no other", async () => {
    using socket = await rawSocket(stack.url);
    const frame = (size: number) => {
      const start = invoke("big", '"function_id":"state::get","data":{"scope":"kept","key":"k","pad":"');
      const [head = "", tail = ""] = [start.slice(0, -1), '"}}'];
      return `${head}${"x".repeat(size - head.length - tail.length)}${tail}`;
    };
    socket.send(frame(FRAME_LIMIT));
    expect((await socket.answer("big")).result).toEqual({ n: 1 });
    socket.send(frame(FRAME_LIMIT + 1));
    expect(await socket.closed()).toBe(1009);
    await kept.unharmed();
  });

  test("a client of ours keeps what is too large to itself: a typed error with the limit, and not even its own socket is lost", async () => {
    const client = connect({ dialer: wsDialer(stack.url), name: "large" });
    await client.trigger("state::set", { scope: "large", key: "before", value: 1 });
    const { worker_id } = client;
    const large = client.trigger("state::set", { scope: "large", key: "k", value: "x".repeat(FRAME_LIMIT) });
    await expect(large).rejects.toMatchObject({ code: "payload_too_large", details: { limit: FRAME_LIMIT } });
    client.registerFunction("large::result", () => "x".repeat(FRAME_LIMIT));
    await client.trigger("engine::functions::list", {});
    await expect(stack.trigger("large::result", {})).rejects.toMatchObject({ code: "payload_too_large", details: { limit: FRAME_LIMIT } });
    expect(await client.trigger("state::get", { scope: "large", key: "before" })).toBe(1);
    expect((await client.trigger("state::get", { scope: "large", key: "k" })) ?? null).toBeNull();
    expect(client.worker_id).toBe(worker_id);
    await client.close({ drain_ms: 0 });
    await kept.unharmed();
  });

  test("binary garbage is ignored: the same socket works on", async () => {
    using socket = await rawSocket(stack.url);
    for (const bytes of [[], [0], [0xff, 0xfe, 0xfd], Buffer.from("OTLP{{{"), Buffer.from("MTRC"), Buffer.from('LOGS{"resourceLogs":5}')]) {
      socket.send(Buffer.from(bytes), { binary: true });
    }
    let seed = 42;
    const random = Uint8Array.from({ length: 65_536 }, () => {
      seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
      return seed >> 16;
    });
    socket.send(random, { binary: true });
    expect((await socket.call("state::get", GET)).result).toEqual({ n: 1 });
    await kept.unharmed();
  });

  test("garbage on the telemetry socket and on a channel that is not there costs only those", async () => {
    using telemetry = await rawSocket(`${stack.url}/otel`);
    for (const bytes of [
      Buffer.from("OTLP\u0000"),
      Buffer.from("junk"),
      Buffer.from("OTLP[]"),
      Buffer.from('OTLP{"resourceSpans":[{"scopeSpans":1}]}'),
    ]) {
      telemetry.send(bytes, { binary: true });
      telemetry.send(bytes.toString());
    }
    await expect(rawSocket(`${stack.url}/ws/channels/none?key=x&dir=read`)).rejects.toThrow(/404|403/);
    await kept.unharmed();
  });

  /** A client's frame by hand: first byte, masked payload. */
  const masked = (first: number, payload: Uint8Array) => Buffer.concat([Buffer.from([first, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
  test.each([
    ["text that is not UTF-8", masked(0x81, Uint8Array.from([0x22, 0xff, 0xfe, 0x22])), 1007],
    ["half a character", masked(0x81, Uint8Array.from([0x22, 0xe2, 0x82])), 1007],
    ["reserved bits", masked(0xf1, Uint8Array.from([0x7b, 0x7d])), 1002],
    ["an opcode that is none", masked(0x83, Uint8Array.from([0x7b, 0x7d])), 1002],
    ["a frame that is not masked", Buffer.from([0x81, 0x02, 0x7b, 0x7d]), 1002],
    ["a continuation of nothing", masked(0x80, Uint8Array.from([0x7b])), 1002],
    [
      "2 000 fragments",
      Buffer.concat([masked(0x01, Uint8Array.from([0x22])), ...Array.from({ length: 2_000 }, () => masked(0x00, Uint8Array.from([0x61])))]),
      1008,
    ],
  ])("%s closes that socket with its code, and no other", async (_what, bytes, code) => {
    expect(await rawBytes(stack.url, bytes)).toBe(code);
    await kept.unharmed();
  });
});

test("A15 what was accepted before all this is done", () => kept.finish());
