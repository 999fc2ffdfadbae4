// Process entry: config, connection, signals, exit code.
import { run } from "@iii/sdk/run";
import { worker } from "./register.ts";

await run(worker);
