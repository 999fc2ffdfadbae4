// The http trigger type and static mounts: what a binding's config and a static mount look like.
import { defineFunction } from "@iii/sdk";
import { z } from "zod";

export const HTTP_METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"] as const;

/** Config of an `http` trigger. `:name` segments of `api_path` are parameters. */
export const HttpTrigger = z.object({
  api_path: z.string().min(1),
  http_method: z.enum(HTTP_METHODS).default("GET"),
  condition_function_id: z.string().min(1).optional(),
  middleware_function_ids: z.array(z.string().min(1)).optional(),
});
export type HttpTrigger = z.infer<typeof HttpTrigger>;

export const httpStatic = defineFunction({
  id: "http::static",
  about: "Serve a folder of files from memory for as long as the caller stays connected. The newest mount of a path serves it.",
  input: z.object({
    mount: z.string().regex(/^\//, "must start with '/'"),
    dir: z.string().min(1),
    /** Answer `index.html` to page loads that no file matches. */
    spa: z.boolean().default(false),
  }),
  output: z.object({ files: z.int(), bytes: z.int() }),
});

export const WorkerHealth = z.object({ name: z.string(), reason: z.string() });

/** What `GET /healthz` answers: 200 when `ready`, else 503. */
export const HealthReport = z.object({
  status: z.enum(["ready", "starting", "degraded"]),
  workers: z.array(z.string()),
  waiting: z.array(z.string()),
  failed: z.array(WorkerHealth),
  durability: z.string(),
});
export type HealthReport = z.infer<typeof HealthReport>;
