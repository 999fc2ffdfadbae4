// policy served by the official SDK: every shell function asks, everything else under `ledger::` is allowed, the rest asks.
import { registerWorker } from "iii-sdk";

const iii = registerWorker(process.env["III_URL"] ?? "ws://127.0.0.1:49134", { workerName: "official-policy" });
iii.registerFunction("policy::check_permissions", async (input: { function_id?: string }) =>
  input.function_id === "engine::functions::list" ? { decision: "allow", rule_id: "official" } : { decision: "needs_approval" },
);
