// The same turn in LangGraph JS with its SQLite saver, which keeps a checkpoint per step and syncs none of them (synchronous=NORMAL).
// Lives outside the workspace: its packages come from bench/peers. Arguments: the model server's URL, a folder, ms per sample.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { latencies } from "../support/load.ts";
import { play } from "../support/processes.ts";

const [url = "", folder = ".", ms = "600"] = process.argv.slice(2);
process.env["LANGCHAIN_TRACING_V2"] = "false";

const peers = createRequire(new URL("../peers/package.json", import.meta.url));
// Its types are not installed where this file is checked.
// biome-ignore lint/suspicious/noExplicitAny: see above
const load = async (name: string): Promise<any> => import(pathToFileURL(peers.resolve(name)).href);
const [{ createReactAgent }, { ChatOpenAI }, { tool }, { SqliteSaver }, { z }] = await Promise.all(
  ["@langchain/langgraph/prebuilt", "@langchain/openai", "@langchain/core/tools", "@langchain/langgraph-checkpoint-sqlite", "zod"].map(
    load,
  ),
);

// A stream would be counted with a tokenizer that is fetched from the network at each call.
const llm = new ChatOpenAI({ model: "any", apiKey: "none", configuration: { baseURL: `${url}/v1` }, streaming: false });
const answer = async ({ text }: { text: string }): Promise<string> => JSON.stringify({ text });
const echo = tool(answer, { name: "echo", description: "Answer with the payload", schema: z.object({ text: z.string() }) });
const saver = SqliteSaver.fromConnString(join(folder, "langgraph.db"));
const graph = createReactAgent({ llm, tools: [echo], prompt: "You are a helpful assistant.", checkpointer: saver });

async function turn(id: number): Promise<void> {
  const options = { configurable: { thread_id: `t${id}` }, durability: "sync" };
  const { messages } = await graph.invoke({ messages: [{ role: "user", content: "call the echo" }] }, options);
  const { content } = messages.at(-1) as { content: unknown };
  if (!String(content).includes("came back")) throw new Error(`the model answered '${String(content)}'`);
}

play({}, { turns: () => latencies(turn, Number(ms)) });
