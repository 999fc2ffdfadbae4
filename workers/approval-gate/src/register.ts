// The approval gate: where people settle parked calls. It intercepts nothing; the orchestrator parks, and wakes on the row.
import { defineWorker, requestFormat, responseFormat } from "@iii/sdk";
import { Config } from "./config.ts";
import { listPending, resolveApproval } from "./contract.ts";
import { Gate } from "./gate.ts";
import { stateRows } from "./rows.ts";

export const worker = defineWorker({
  name: "approval-gate",
  config: Config,
  register(on, { iii, clock, log }) {
    const gate = new Gate({ rows: stateRows(iii), clock, log });
    // Served by hand, because bad input is one of its answers and not an error of the call.
    iii.registerFunction(resolveApproval.id, (payload, call) => gate.resolve(payload, call.context?.caller ?? "unknown"), {
      description: resolveApproval.about,
      request_format: requestFormat(resolveApproval),
      response_format: responseFormat(resolveApproval),
      metadata: resolveApproval.metadata,
    });
    on(listPending, ({ session_id }) => gate.pending(session_id));
  },
});
