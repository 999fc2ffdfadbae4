// models-catalog served by the official SDK, unmodified: proof that this layer is replaced by registering the same ids.
import { registerWorker } from "iii-sdk";

const DEMO = {
  id: "demo",
  provider: "scripted",
  api: "scripted",
  display_name: "Demo, from the official SDK",
  context_window: 32_768,
  pricing: { input_per_1m: 0, output_per_1m: 0 },
};

const iii = registerWorker(process.env["III_URL"] ?? "ws://127.0.0.1:49134", { workerName: "official-catalog" });
iii.registerFunction("models::list", async () => ({ models: [DEMO] }));
iii.registerFunction("models::get", async (input: { provider?: string; model_id?: string }) =>
  input.provider === DEMO.provider && input.model_id === DEMO.id ? DEMO : null,
);
iii.registerFunction("models::supports", async () => ({ supported: false }));
iii.registerFunction("models::register", async () => ({ key: "ignored", registered: true }));
