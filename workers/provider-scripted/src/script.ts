// Reads what the demo model is asked to do and writes the script of its answer. Pure: the same conversation, the same script.
import { type ErrorKind, type HealedRequest, resultText, type Turn } from "@iii/provider-kit";
import { z } from "zod";
import type { Wire } from "./events.ts";

/** One event of the answer and how long to wait before it. */
export const Beat = z.object({ after_ms: z.number().nonnegative(), event: z.unknown() });
export const Script = z.object({ status: z.int(), error: z.string().optional(), beats: z.array(Beat) });
export type Script = z.infer<typeof Script>;

const MARK = "(demo)";
const TOOL = "agent_trigger";
const STATUS: Readonly<Record<ErrorKind, number>> = {
  auth_expired: 401,
  rate_limited: 429,
  context_overflow: 413,
  transient: 503,
  permanent: 400,
};
const HELP = [
  "I am a demo model: I run without a key and do what your last message says.",
  "`say TEXT` streams TEXT,",
  '`call FUNCTION_ID JSON` makes one tool call, e.g. `call shell::fs::ls {"path":"."}`,',
  '`calls [{"function":…,"payload":…}]` makes several,',
  "`slow N TEXT` spreads TEXT over N ms,",
  "`fail KIND` ends with an error, `cut` breaks off.",
].join(" ");

type Timing = { readonly word_ms: number };
type Wanted = { readonly function: string; readonly payload: unknown };

function words(text: string): string[] {
  return text.match(/\S+\s*|^\s+/g) ?? [];
}

function textBeats(text: string, word_ms: number): { after_ms: number; event: Wire }[] {
  return words(text).map((word) => ({ after_ms: word_ms, event: { type: "text", block: 0, text: word } }));
}

function answer(request: HealedRequest, beats: { after_ms: number; event: Wire }[], calls = false): Script {
  const input = Math.ceil(JSON.stringify([request.system_prompt, request.turns]).length / 4);
  const output = Math.max(1, Math.ceil(JSON.stringify(beats.map(({ event }) => event)).length / 16));
  const end: Wire = { type: "end", input, output, reason: calls ? "function_call" : "end" };
  return { status: 200, beats: [...beats, { after_ms: 0, event: end }] };
}

/** The mark stands on a line of its own behind several lines: at the end of the last one it would keep a code fence open. */
const marked = (text: string): string => `${text}${text.includes("\n") ? "\n\n" : " "}${MARK}`;

function say(request: HealedRequest, text: string, word_ms: number): Script {
  return answer(request, textBeats(marked(text), word_ms));
}

function call(request: HealedRequest, wanted: readonly Wanted[], { word_ms }: Timing): Script {
  const intro = textBeats(`Calling ${wanted.map((one) => one.function).join(", ")} ${MARK}`, word_ms);
  const calls = wanted.flatMap((one, index): { after_ms: number; event: Wire }[] => [
    { after_ms: 0, event: { type: "call", block: index + 1, name: TOOL, arguments: JSON.stringify(one) } },
    { after_ms: 0, event: { type: "close", block: index + 1 } },
  ]);
  return answer(request, [...intro, { after_ms: 0, event: { type: "close", block: 0 } }, ...calls], true);
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const Batch = z.array(z.object({ function: z.string().min(1), payload: z.unknown().default({}) })).min(1);

/** What each word does with the rest of the line. */
const WORDS: Readonly<Record<string, (request: HealedRequest, rest: string, timing: Timing) => Script>> = {
  say: (request, rest, { word_ms }) => say(request, rest, word_ms),
  call(request, rest, timing) {
    const [, id = "", body = ""] = rest.match(/^(\S+)\s*([\s\S]*)$/) ?? [];
    const payload = body.trim() === "" ? {} : json(body);
    if (id === "") return say(request, "`call` needs a function id and a JSON payload.", timing.word_ms);
    if (payload === undefined) return say(request, `The payload after \`call ${id}\` is not JSON.`, timing.word_ms);
    return call(request, [{ function: id, payload }], timing);
  },
  calls(request, rest, timing) {
    const batch = Batch.safeParse(json(rest));
    if (!batch.success) return say(request, '`calls` needs a JSON array like [{"function":"…","payload":{}}].', timing.word_ms);
    return call(request, batch.data, timing);
  },
  slow(request, rest, { word_ms }) {
    const [, span, text = ""] = rest.match(/^(\d{1,7})\s*([\s\S]*)$/) ?? [];
    if (span === undefined) return say(request, "`slow` needs a number of milliseconds and a text.", word_ms);
    return say(request, text, Number(span) / Math.max(1, words(marked(text)).length));
  },
  fail(request, rest, { word_ms }) {
    const kind = rest.trim();
    if (!Object.hasOwn(STATUS, kind)) return say(request, `\`fail\` needs one of: ${Object.keys(STATUS).join(", ")}.`, word_ms);
    return { status: STATUS[kind as ErrorKind], error: `the script asked for ${kind} ${MARK}`, beats: [] };
  },
  cut: (_request, rest, { word_ms }) => ({ status: 200, beats: textBeats(`This answer breaks off ${MARK} ${rest}`.trim(), word_ms) }),
};

/** The newest thing that the user said. */
function lastUserText(turns: readonly Turn[]): string {
  const last = turns.findLast((turn) => turn.role === "user");
  const text = last?.content.findLast((block) => block.type === "text");
  return text?.text.trim() ?? "";
}

/** The results that the newest turn waits to hear about, if the conversation ends with any. */
function openResults(turns: readonly Turn[]): string | undefined {
  const last = turns.at(-1);
  if (last?.role !== "assistant" || last.results.length === 0) return undefined;
  return last.results.map((result) => resultText(result)).join("\n");
}

/** The whole answer to a request, with its timing. */
export function scriptFor(request: HealedRequest, timing: Timing): Script {
  const results = openResults(request.turns);
  if (results !== undefined) return say(request, results.trim() === "" ? "The call gave no text." : results, timing.word_ms);
  const text = lastUserText(request.turns);
  const [, word = "", rest = ""] = text.match(/^(\S+)\s*([\s\S]*)$/) ?? [];
  const known = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
  return known === undefined ? say(request, HELP, timing.word_ms) : known(request, rest, timing);
}
