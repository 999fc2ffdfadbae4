import { expect, test } from "vitest";
import { checkCommand } from "../cli/words.ts";

const COMMANDS = ["start", "trigger", "worker", "approvals", "help"];

test.each<[string[], string]>([
  [["wrker", "list"], "unknown command 'wrker'; did you mean 'worker'?"],
  [["--json", "--url", "ws://x", "aprovals"], "unknown command 'aprovals'; did you mean 'approvals'?"],
  [["zzzzzzzz"], "unknown command 'zzzzzzzz'; commands: start, trigger, worker, approvals, help"],
  [["constructor"], "unknown command 'constructor'; commands: start, trigger, worker, approvals, help"],
])("M1 %j names no command", (args, message) => {
  expect(() => checkCommand(args, COMMANDS)).toThrow(expect.objectContaining({ code: "usage", message }));
});

test.each([[[]], [["-c", "other.yaml"]], [["--json", "worker", "lst"]], [["--url", "worker", "start"]], [["--help"]]])(
  "%j is left to the parser",
  (args) => {
    expect(() => checkCommand(args, COMMANDS)).not.toThrow();
  },
);
