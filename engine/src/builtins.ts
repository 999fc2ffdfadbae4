// The built-ins that every engine has. The HTTP front and the supervisor need a process around them and come from its assembler.
import { catalogueBuiltin } from "./builtin/catalogue/register.ts";
import { channelBuiltin } from "./builtin/channel/register.ts";
import { httpBuiltin } from "./builtin/http/register.ts";
import { observabilityBuiltin } from "./builtin/observability/register.ts";
import { pubsubBuiltin } from "./builtin/pubsub/register.ts";
import { storageBuiltins } from "./builtin/storage/register.ts";
import type { EngineConfig } from "./config.ts";
import type { Builtin } from "./ports/host.ts";

export function defaultBuiltins(config: EngineConfig): Builtin[] {
  const { max_body_bytes, max_value_bytes, http_timeout_ms } = config.limits;
  const pubsub = pubsubBuiltin();
  const publish = pubsub.publishTo;
  return [
    // First up and last down: it sees what the others do.
    observabilityBuiltin(),
    catalogueBuiltin(),
    pubsub,
    channelBuiltin(),
    ...storageBuiltins({ queues: config.queues, publish, max_value_bytes }),
    httpBuiltin({ max_body_bytes, timeout_ms: http_timeout_ms }),
  ];
}
