// The one tool that a model has: its name, its schema and what the model is told of it. Pure text.
import type { AgentFunction } from "@iii/contracts";

export const META_TOOL = "agent_trigger";

export const META_TOOL_SCHEMA = {
  type: "object",
  properties: {
    function: { type: "string", description: "The id of the function to run, exactly as the catalogue spells it, e.g. shell::fs::read." },
    payload: { type: "object", description: "The function's input as a JSON object (not as a string). {} when it needs none." },
  },
  required: ["function"],
} as const;

export const AGENT_TRIGGER: AgentFunction = {
  name: META_TOOL,
  description:
    "Run one function on the bus and get its result. Everything you do goes through this tool. Find ids and input schemas with " +
    "engine::functions::list and engine::functions::info. Some calls wait for a person's approval before they run.",
  parameters: META_TOOL_SCHEMA,
  label: META_TOOL,
  execution_mode: "parallel",
  prepare_arguments_supported: false,
};
