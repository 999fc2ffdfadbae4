// What provider-anthropic serves. Schemas and definitions only.
import { providerComplete, providerStream } from "@iii/contracts";

export const stream = providerStream("anthropic");
export const complete = providerComplete("anthropic");
