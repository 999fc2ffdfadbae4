// The `iii` command: reads the command line, runs one command, exits with a code that says how it went.
import { createLogger } from "@iii/sdk/run";
import { Command, CommanderError } from "commander";
import { configPath } from "../boot/config-file.ts";
import { VERSION } from "../boot/version.ts";
import { decide, pendingApprovals, pick } from "./approvals.ts";
import { engineUrl, withEngine } from "./connection.ts";
import { addOperator, keyedLink, printToken, watch } from "./identity.ts";
import { createOutput, type Output, table } from "./output.ts";
import { readPayload, readTimeout } from "./payload.ts";
import { callByName } from "./trigger.ts";
import { checkCommand } from "./words.ts";
import { listWorkers, workerCommand } from "./workers.ts";

interface Globals {
  readonly json: boolean;
  readonly verbose: boolean;
  readonly url?: string;
}

const streams = { out: (text: string) => void process.stdout.write(text), err: (text: string) => void process.stderr.write(text) };
const program = new Command("iii")
  .description("A worker bus and, on it, an agent harness.")
  .version(VERSION)
  .option("--json", "print one JSON document", false)
  .option("--verbose", "print stack traces of errors", false)
  .option("--url <ws>", "address of the engine (default: III_URL, else the engine of this folder)")
  .showSuggestionAfterError()
  .exitOverride();

function output(): Output {
  return createOutput(streams, program.opts<Globals>());
}
function url(): string {
  return engineUrl(program.opts<Globals>().url, process.env);
}

program
  .command("start", { isDefault: true })
  .description("start the engine and every worker that config.yaml names")
  .option("-c, --config <file>", "the configuration file (default: III_CONFIG, else config.yaml)")
  .option("--no-parent", "run without the process that starts the stack again when it dies")
  .action(async (options: { config?: string }) => {
    const { runUntilSignal } = await import("./start.ts");
    const { logLine } = await import("../boot/log-line.ts");
    const destination = { write: (line: string) => streams.err(`${logLine("engine", line.trimEnd())}\n`) };
    const log = createLogger({ name: "engine", level: process.env["III_LOG_LEVEL"] ?? "warn", destination });
    await runUntilSignal({ configPath: configPath(options.config, process.env), env: process.env, log, out: streams.out });
  });

program
  .command("trigger")
  .description("call a function and print its answer")
  .argument("<function>", "id of the function, e.g. engine::workers::list")
  .argument("[pairs...]", "key=value of the payload; over --data")
  .option("--data <json>", "the payload as JSON")
  .option("--timeout <ms>", "how long to wait", "30000")
  .action(async (id: string, pairs: string[], options: { data?: string; timeout: string }) => {
    const payload = readPayload(pairs, options.data);
    const timeout_ms = readTimeout(options.timeout);
    const answer = await withEngine(url(), (iii) => callByName(iii, id, payload, timeout_ms));
    output().data(answer ?? null, () => JSON.stringify(answer ?? null, null, 2));
  });

const worker = program.command("worker").description("look at workers, start and stop them");
worker
  .command("list")
  .description("every worker of config.yaml and how it does")
  .action(async () => listWorkers(url(), output()));
for (const verb of ["start", "stop", "restart"] as const) {
  worker
    .command(verb)
    .description(`${verb} one worker as config.yaml has it now`)
    .argument("<name>")
    .action(async (name: string) => workerCommand(url(), output(), verb, name));
}

worker
  .command("token")
  .description("make a token for an entry of config.yaml, for a process that you start yourself")
  .argument("<name>")
  .action(async (name: string) => printToken(url(), output(), name));

program
  .command("operator")
  .description("keys of people")
  .command("add")
  .description("make a further key; it is told once")
  .argument("<name>")
  .action(async (name: string) => addOperator(url(), output(), name));

program
  .command("open")
  .description("print the page's address with its key")
  .argument("[path]", "where in the page", "/")
  .action((path: string) => {
    const link = keyedLink(process.env, path);
    output().data({ url: link }, () => link);
  });

program
  .command("dev")
  .description("run one worker of workers/ in watch mode against the running engine")
  .argument("<name>")
  .action(async (name: string) => {
    process.exitCode = await watch(url(), process.env, name);
  });

program
  .command("approvals")
  .description("list the calls that wait for a decision")
  .action(async () => {
    const rows = await withEngine(url(), pendingApprovals);
    const text = () =>
      table([
        ["CALL", "SESSION", "FUNCTION", "ARGUMENTS"],
        ...rows.map((row) => [row.function_call_id, row.session_id, row.function_id, JSON.stringify(row.args)]),
      ]);
    output().data(rows, () => (rows.length === 0 ? "nothing waits for a decision" : text()));
  });

async function settle(id: string | undefined, decision: "allow" | "deny", reason: string | undefined): Promise<void> {
  await withEngine(url(), async (iii) => {
    const row = pick(await pendingApprovals(iii), id);
    const answer = await decide(iii, row, decision, reason);
    output().data(answer, () => `${decision === "allow" ? "allowed" : "denied"}: ${row.function_id} ${JSON.stringify(row.args)}`);
  });
}
program
  .command("approve")
  .description("allow a call; without an id, the only one that waits")
  .argument("[id]")
  .action(async (id?: string) => settle(id, "allow", undefined));
program
  .command("deny")
  .description("deny a call")
  .argument("<id>")
  .option("--reason <text>", "what the model is told")
  .action(async (id: string, options: { reason?: string }) => settle(id, "deny", options.reason));

try {
  checkCommand(process.argv.slice(2), [...program.commands.map((command) => command.name()), "help"]);
  await program.parseAsync();
} catch (thrown) {
  // commander has printed what was wrong; help and version are not errors.
  if (thrown instanceof CommanderError) process.exitCode = thrown.exitCode === 0 ? 0 : 2;
  else process.exitCode = output().failed(thrown);
}
