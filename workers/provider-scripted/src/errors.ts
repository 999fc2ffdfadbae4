// Failures of the scripted model.
import { classifyHttp, type Failure, type Headers } from "@iii/provider-kit";

export function classify(status: number, _headers: Headers, body: string): Failure {
  return classifyHttp(status, body);
}
