// A bus with everybody who could ask for something: people, pages, entries of config.yaml, strangers, and tools of an agent.

import { linkedDialer } from "@iii/engine";
import type { EngineConfig } from "@iii/engine/config";
import { type TestBus, testBus } from "@iii/engine/testing";
import type { Client } from "@iii/sdk";
import { connect, type Dialer } from "@iii/sdk";
import type { Principal } from "@iii/sdk/protocol";
import { seededRandom, settle } from "@iii/sdk/testing";
import type { z } from "zod";

export const PAGE = "http://localhost:3111";

/** How a call ended: `ok`, or the error's code. */
export async function outcome(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "ok",
    (error: { code?: string }) => error.code ?? String(error),
  );
}

/** What one asker tries. Given a client, tells how it went. */
export type Deed = (iii: Client, rig: Rig) => Promise<string>;

export interface Rig extends AsyncDisposable {
  readonly bus: TestBus;
  /** Serves the control plane: an entry that provides every protected id, and calls what decides. */
  readonly control: Client;
}

/** Functions of the control plane that the deeds try to reach. */
const SERVED = [
  "approval::resolve",
  "approval::list_pending",
  "policy::check_permissions",
  "auth::get_token",
  "auth::status",
  "run::start",
  "run::spawn",
  "turn::get_state",
  "turn::step",
  "session-tree::messages",
  "session-tree::append",
  "models::list",
  "ui::subscribe",
] as const;

export async function accessRig(access: z.input<typeof EngineConfig>["access"] = {}): Promise<Rig> {
  const bus = await testBus([], { config: { access, queues: { "turn-step": { type: "standard" }, own: { type: "standard" } } } });
  bus.entries.set("control", { provides: ["*"], calls: ["*"], control: true });
  const control = await bus.connect("control", { as: { kind: "entry", name: "control" } });
  for (const id of SERVED) control.registerFunction(id, () => ({ served: id }));
  await settle();
  return { bus, control, [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose]() };
}

/** A tool of an agent, as a proven entry or as a client that proved nothing; without the SDK's own care for the mark, as foreign clients are. */
export async function toolOf(rig: Rig, options: { proven: boolean; name?: string }): Promise<Tool> {
  const name = options.name ?? "tool";
  const principal: Principal = options.proven ? { kind: "entry", name } : { kind: "none", name: "" };
  if (options.proven) rig.bus.entries.set(name, { provides: [], calls: [] });
  const dialer = linkedDialer(() => rig.bus.engine, { principal });
  const tool = new Tool(rig, dialer, `${name}::run`);
  await tool.serve();
  return tool;
}

export class Tool {
  readonly client: Client;
  readonly #rig: Rig;
  readonly #dialer: Dialer;
  readonly #id: string;
  #body: (() => Promise<unknown>) | undefined;
  /** Reattach tokens of its connections, by worker id. */
  readonly tokens = new Map<string, string>();
  #drop: (() => void) | undefined;
  #say: ((text: string) => void) | undefined;

  constructor(rig: Rig, dialer: Dialer, id: string) {
    this.#rig = rig;
    this.#id = id;
    this.#dialer = {
      address: dialer.address,
      dial: (path, handlers) => {
        const message = (data: Uint8Array, binary: boolean): void => {
          this.#learn(data);
          handlers.message(data, binary);
        };
        const wire = dialer.dial(path, { ...handlers, message });
        if (path !== "/") return wire;
        this.#drop ??= () => wire.terminate();
        this.#say ??= (text) => wire.send(text);
        return wire;
      },
    };
    this.client = this.#connect();
  }

  /** No ambient scope: the calls carry neither parent nor mark, as those of official clients. */
  #connect(): Client {
    const ambient = { current: () => undefined, run: <T>(_scope: unknown, body: () => T): T => body() };
    return connect({ dialer: this.#dialer, clock: this.#rig.bus.clock, random: seededRandom(7), ambient });
  }

  async serve(): Promise<void> {
    this.client.registerFunction(this.#id, async () => {
      await this.#body?.();
      return null;
    });
    await settle();
  }

  /** An agent of `session_id` calls the tool, which does `body`. */
  async run(body: () => Promise<unknown>, session_id = "s1"): Promise<void> {
    this.#body = body;
    await this.#rig.control.trigger(this.#id, {}, { origin: "agent", session_id });
  }

  /** Sends a frame of its own making on its first socket. */
  say(frame: object): void {
    this.#say?.(JSON.stringify(frame));
  }

  #learn(data: Uint8Array): void {
    const frame = JSON.parse(new TextDecoder().decode(data)) as { type?: string; worker_id?: string; reattach_token?: string };
    if (frame.type === "workerregistered") this.tokens.set(frame.worker_id ?? "", frame.reattach_token ?? "");
  }

  /** Its socket is lost and it comes back, with its reattach token. */
  async reconnect(): Promise<void> {
    this.#drop?.();
    await settle();
    await this.#rig.bus.clock.advance(2_000);
  }

  /** One more connection of the same process. */
  async second(): Promise<Client> {
    const client = this.#connect();
    await settle();
    return client;
  }
}

/** One more connection of whoever this is: an operator, nobody, or an entry of config.yaml with these rights. */
export function as(
  rig: Rig,
  name: string,
  who: "operator" | "nobody" | { provides?: string[]; calls?: string[] },
  origin?: string,
): Promise<Client> {
  const more = origin === undefined ? {} : { origin };
  if (who === "operator") return rig.bus.connect(name, { ...more, as: { kind: "operator", name } });
  if (who === "nobody") return rig.bus.connect(name, { ...more, as: { kind: "none", name: "" } });
  rig.bus.entries.set(name, { provides: who.provides ?? [], calls: who.calls ?? [] });
  return rig.bus.connect(name, { ...more, as: { kind: "entry", name } });
}
