// What provider-openai serves. Schemas and definitions only.
import { providerComplete, providerStream } from "@iii/contracts";

export const stream = providerStream("openai");
export const complete = providerComplete("openai");
