// The floor of a turn: one process, two streamed model calls over bare `node:http`, a local echo, four commits of bare SQLite FULL.
// Arguments: the model server's URL, a folder, ms per sample.
import { Agent, request } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { latencies } from "../support/load.ts";
import { play } from "../support/processes.ts";

const [url = "", folder = ".", ms = "600"] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });
const db = new DatabaseSync(join(folder, "turns.db"));
db.exec(
  "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE turns (id INTEGER, step INTEGER, value TEXT, PRIMARY KEY (id, step)) WITHOUT ROWID",
);
const put = db.prepare("INSERT INTO turns (id, step, value) VALUES (?, ?, ?)");

interface Event {
  readonly delta?: { readonly text?: string; readonly partial_json?: string };
}

/** The texts of all deltas of one streamed answer. */
function ask(messages: readonly unknown[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { method: "POST", agent, headers: { "content-type": "application/json" } };
    const sent = request(`${url}/v1/messages`, options, (response) => {
      let rest = "";
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        const frames = (rest + chunk).split("\n\n");
        rest = frames.pop() ?? "";
        for (const frame of frames) {
          const { delta } = JSON.parse(frame.slice(frame.indexOf("data: ") + 6)) as Event;
          text += delta?.text ?? delta?.partial_json ?? "";
        }
      });
      response.on("end", () => resolve(text));
    });
    sent.on("error", reject);
    sent.end(JSON.stringify({ model: "any", stream: true, messages }));
  });
}

async function turn(id: number): Promise<void> {
  const messages: unknown[] = [{ role: "user", content: "call the echo" }];
  const save = (step: number): void => void put.run(id, step, JSON.stringify(messages));
  save(0);
  const call = await ask(messages);
  messages.push({ role: "assistant", content: call });
  save(1);
  const { payload } = JSON.parse(call) as { payload: unknown };
  messages.push({ role: "user", content: [{ type: "tool_result", content: JSON.stringify(payload) }] });
  save(2);
  const text = await ask(messages);
  if (!text.includes("came back")) throw new Error(`the model answered '${text}'`);
  messages.push({ role: "assistant", content: text });
  save(3);
}

play({}, { turns: () => latencies(turn, Number(ms)) });
