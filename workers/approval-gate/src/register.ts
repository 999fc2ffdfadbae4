// The approval gate: where people settle parked calls. It intercepts nothing; the orchestrator parks, and wakes on the row.
import { StateEvent } from "@iii/engine/contract";
import { defineFunction, defineWorker } from "@iii/sdk";
import { z } from "zod";
import { Config } from "./config.ts";
import { APPROVALS_SCOPE, ApprovalRow, listPending, resolveApproval } from "./contract.ts";
import { Gate } from "./gate.ts";
import { stateRows } from "./rows.ts";

const onRow = defineFunction({
  id: "approval::on_row",
  about: "Takes a change of an approval row, so that its time is counted from the moment it was asked.",
  input: StateEvent,
  output: z.null(),
  internal: true,
});

export const worker = defineWorker({
  name: "approval-gate",
  config: Config,
  register(on, { iii, clock, log }) {
    const gate = new Gate({ rows: stateRows(iii, log), clock, log });
    // Raw, because bad input is one of its answers and not an error of the call.
    on(resolveApproval, (payload, call) => gate.resolve(payload, call.context?.principal ?? { kind: "none", name: "" }), { raw: true });
    on(listPending, ({ session_id }) => gate.pending(session_id));
    on(onRow, ({ event_type, key, new_value }) => {
      const row = ApprovalRow.safeParse(new_value);
      if (event_type === "state:deleted") gate.deadlines.forget(key);
      else if (row.success) gate.deadlines.remaining(row.data);
      return null;
    });
    on.trigger({ type: "state", function_id: onRow.id, config: { scope: APPROVALS_SCOPE } });
  },
});
