// What provider-scripted serves. Schemas and definitions only.
import { providerComplete, providerStream } from "@iii/contracts";

export const stream = providerStream("scripted");
export const complete = providerComplete("scripted");
