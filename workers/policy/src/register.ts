// The policy worker: answers policy::check_permissions from the permissions file. Fails closed by not starting on a broken file.
import { resolve } from "node:path";
import { isClosedToAgents } from "@iii/engine/contract";
import { defineWorker, systemClock } from "@iii/sdk";
import { Config } from "./config.ts";
import { checkPermissions } from "./contract.ts";
import { declarationOf } from "./declared.ts";
import { PermissionsFile } from "./file.ts";
import { humanOnlyDenial } from "./human-only.ts";
import { decide, looksAtArguments } from "./rules.ts";

export const worker = defineWorker({
  name: "policy",
  config: Config,
  async register(on, { config, root, log, iii }) {
    // A file on disk changes in real time, whatever clock the bus runs on.
    const file = new PermissionsFile(resolve(root, config.permissions_path), { log, clock: systemClock });
    await file.open();
    on(checkPermissions, async ({ function_id, args }) => {
      if (isClosedToAgents(function_id)) return humanOnlyDenial(function_id);
      const { rules } = file;
      const declared = looksAtArguments(rules, function_id) ? await declarationOf(iii, function_id) : undefined;
      return decide(rules, function_id, args ?? {}, declared);
    });
    return { stop: () => file.close() };
  },
});
