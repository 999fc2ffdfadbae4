// Process entry of the console worker.
import { run } from "@iii/sdk/run";
import { worker } from "./register.ts";

await run(worker);
