// Process entry.
import { run } from "@iii/sdk/run";
import { worker } from "./register.ts";

await run(worker);
