// What this worker takes from its `config` block in config.yaml. Schema only: the boot reads it to name every fault before anything starts.
import { z } from "zod";

export const Config = z.strictObject({});
