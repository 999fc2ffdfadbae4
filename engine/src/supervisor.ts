// The supervisor's door for whoever assembles a stack: the plan's shapes, the built-in, and real processes.
export {
  BundledWorker,
  type Child,
  type ChildEvents,
  HostCommand,
  HostReport,
  type Plan,
  type PlanSource,
  type ProcessSpec,
  type Spawner,
  type WorkerPlan,
} from "./builtin/supervisor/port.ts";
export { type SupervisorBuiltin, supervisorBuiltin } from "./builtin/supervisor/register.ts";
export { processSpawner } from "./builtin/supervisor/spawner.ts";
