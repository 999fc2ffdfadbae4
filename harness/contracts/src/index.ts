// The vocabulary of the agent domain. Schemas only; a type shares its schema's name.
export * from "./approval.ts";
export * from "./content.ts";
export * from "./denial.ts";
export * from "./mcp.ts";
export * from "./model.ts";
export * from "./provider.ts";
export * from "./turn.ts";
