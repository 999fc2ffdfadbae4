// What the product promises, one line each, by the id that its tests carry. Data only: `coverage.test.ts` binds it to the tests,
// `docs/acceptance.md` is made from it (`pnpm requirements`).

export interface Group {
  readonly title: string;
  /** Where the promises come from. */
  readonly from: string;
  readonly rows: Readonly<Record<string, string>>;
}

const FAULT = "a fault that was found by trying the first release";
const USER = "what a new user met";

export const GROUPS: readonly Group[] = [
  {
    title: "The first turn",
    from: "the first milestone",
    rows: {
      A1: "One command starts everything, from a fresh clone and an empty home, and Ctrl+C leaves nothing behind",
      A2: "The first token is on the page before the last byte was sent, and a reload in mid-turn shows the true state",
      A3: "With `engine.bundled: process`, a killed worker host turns `/healthz` to 503 with its workers' names",
      A4: "A parked call outlives `kill -9` of the engine, and of the host where there is one: allow runs it once; deny, expiry, two decisions at once, changed arguments",
      A5: "Abort: the process group is gone and the upstream request closed before `stopped` is shown",
      A6: "SIGKILL within 5 ms after an acknowledged commit: the turn ends, one start per attempt in a ledger outside, no acknowledged write lost",
      A7: "A lone acknowledged write costs one sync, counted (with `strace`)",
      A8: "A power cut loses no acknowledged write (images of a disk copied in mid-write; with loop devices)",
      A9: "Every cut point between commit, effect and outcome, in memory",
      A10: "Redelivery, reordering and stale messages change nothing",
      A11: "Anthropic and OpenAI over a third party's model server; the same bytes split anywhere give the same events",
      A12: "Bytes on `agent::events` grow linearly with the text",
      A13: "The official `iii-sdk` unmodified: tool, client, stream trigger, approval; catalogue and policy swapped by an edit of `config.yaml`",
      A14: "One trace for a turn with an approval and killed processes: one root, no orphan, found by `group_by iii.session.id`",
      A15: "Bad input: a typed error that says what and how to fix it; one socket or one call at most is lost",
      A16: "A worker from a package, a folder, or started by hand; a worker without any SDK",
      A17: "Four workers are a harness; without policy every call is refused",
      A18: "Who may import whom",
    },
  },
  {
    title: "What a provider sends and we cannot read is never taken for good",
    from: FAULT,
    rows: {
      "K1.1": "Argument deltas with an unreadable one among them: error, the call does not run",
      "K1.2": "`delta.content` as a list of parts keeps its text",
      "K1.3": "Arguments as an object, legacy `function_call`, `tool_use` without `input`: used, or a clear error",
      "K1.4": "An unknown end word is an error that names the word, and forbids the calls before it",
      "K1.5": "`tool_calls` as the end word without any call: error or one retry",
      "K1.6": "A 200 with no content is an error that says so",
      "K1.7": "An error event after text is an error, also when `[DONE]` follows; the text is kept as partial",
      "K1.8": "Reasoning and refusal are kept beside an empty field of the same meaning",
      "K1.9": "Events parted by one newline, and two JSON values in two `data:` lines, are both read",
      "K1.10":
        "A completion for a stream and a stream for a completion are read; other bodies are an error with status, type and ≤ 2 KB of body",
      "P1.1":
        "Any one event of an answer spoiled, unknown or taken away: the same answer or an error, and never a call that it does not have",
      "K1.11": "A count that was told is never replaced by a later zero",
    },
  },
  {
    title: "No datum ends a turn or a session for good",
    from: FAULT,
    rows: {
      "K2.1": "`constructor`, `prototype` and `__proto__` are data; more than 512 levels are an error of that call or message",
      "K2.2": "A model answer too large to store is an error of that answer",
      "K2.3": "A taken entry id costs that entry at most; the next turn works",
      "K2.4": "A record of another version is migrated; an unreadable one is a failed turn, and the session goes on",
      "K2.5": "Images that a vendor refuses are put right or replaced by a text when they are sent",
      "K2.6": "Reasoning goes back to the server that it came from, in its form, and to no other",
      "K2.7": "One malformed row is reported, and the list goes on",
      "K2.8": "A queue message of another shape is a dead letter with a reason",
      "P2.1": "Depth 512 is accepted and 513 refused with `payload_too_deep`, for heads, values and arguments alike",
      "P2.2": "Any JSON value as tool result, arguments or message: the turn stops, the transcript is true, the next turn works",
    },
  },
  {
    title: "Nothing ends because something beside it failed; one decision in one layer",
    from: FAULT,
    rows: {
      "K3.1": "The session worker away while a batch runs: the append waits, tools run to their own results",
      "K3.2":
        "One layer retries: 1, 1, 4 and 4 requests for a long `retry-after`, a quota, a 429 and a 503; the error says how long the vendor wanted",
      "K3.3": "60 turns at once for one session with `if_busy: queue`: all kept, in order of arrival",
      "K3.4": "Usage that was not told is estimated and marked so, also after an abort; never $0 for unknown",
      "K3.5": "An answer may stream for longer than any fixed time while tokens flow",
      "K3.6": "A planned call takes one path through the machine",
    },
  },
  {
    title: "A frame that cannot be written answers its caller",
    from: FAULT,
    rows: {
      "K4.1": "A value nested 20,000 deep in details, metadata, a payload or a schema is refused at once, and its caller told",
      "K4.2": "What was refused leaves its worker and the engine able to serve and to stop",
      "K4.3": "One worker's schema breaks no list",
      "K4.4": "An HTTP body nested 500,000 deep is a 400",
      "K4.5": "Schemas of 64 KB, descriptions of 4 KB, baggage of 8 KB and names of 256 printable characters are the limit",
      "K4.6": "Refusals are logged once per connection and second",
    },
  },
  {
    title: "Absence never means more rights",
    from: FAULT,
    rows: {
      "K7.1": "A tool that acts after its answer, or after a reconnect, is still the agent's",
      "K7.2": "No agent and no browser registers or takes over a protected function",
      "K7.3": "A nested agent call reads no other session and administers neither queues nor traces nor logs",
      "K7.4": "An unknown key of a rule is a fault with line and column; the last good rules stay",
      "K7.5": "Paths and argument lists are judged in the form in which they are used",
      "K7.6": "`by` of a decision is what the engine knows of the caller",
      "K7.7": "What only people may call stands in one list",
      "K7.8": "A child process has the keys that it needs in its environment, and no others",
      "P5.1": "A token in the address names an entry and gives no rights; an unknown one is a 401",
      "P5.2": "The operator's key decides and administers; a page without its key decides nothing",
      "P5.3": "`engine.auth: required` lets nobody in without a token but to `/healthz` and the page's static files",
      "P5.4": "Who × what × whose: every cell of the table of rights is stated and tried",
    },
  },
  {
    title: "Waits do not read the wall clock",
    from: FAULT,
    rows: {
      "K8.1": "A clock set back stalls no deadline, no retry and no alarm",
      "K8.2": "A clock set forward ends no running call and drops no parked approval",
      "K8.3": "The page counts down from the server's `remaining_ms`",
    },
  },
  {
    title: "The bus against the official suites",
    from: "the official clients' own suites, and faults met with them",
    rows: {
      "K11.1": "A connection ends when its Close frame is read",
      "K11.2": "`engine::triggers::list` has instances for clients that never announce themselves",
      "K11.3": "A trigger of an unknown type and an HTTP-invoked function are answered with a warning now",
      "K11.4": "A void call outlives its caller",
      "K11.5": "SIGTERM gives running calls of external workers 5 s",
      "K11.6": "A `traceparent` of version 00 with a fifth part starts a new trace",
      "P7.1": "What the official suites ask of functions, triggers and introspection holds with every client generation",
      "P7.2": "What they ask of state, streams, queues and topics holds with every client generation",
      "P7.3": "What they ask of HTTP triggers and channels holds with every client generation",
      "P7.4": "What they ask of trigger types and their providers' lives holds with every client generation",
    },
  },
  {
    title: "Page and command line",
    from: FAULT,
    rows: {
      "K12.1": "A socket that dies in silence is noticed, and the page dials again",
      "K12.2": "`iii approvals` shows invisible characters and direction marks as escapes",
      "K12.3": "`model_unknown` names the way to make a model known",
      M1: "A mistyped command is answered with the near one",
      M2: "All wrong fields are told at once, each with what it must be",
      M3: "`--timeout` that is no number is refused",
      M4: "JSON where key=value is expected names `--data`",
      M5: "Exit codes by kind: 2 for wrong usage, 7 for a conflict",
    },
  },
  {
    title: "Secrets",
    from: FAULT,
    rows: {
      "K13.1": "A key echoed in any encoding or over two chunks is stored nowhere",
      "K13.2": "A secret in a URL's user info is stored nowhere",
      "K13.3": "One list of secret shapes",
    },
  },
  {
    title: "Small ones",
    from: FAULT,
    rows: {
      "K14.1": "Output tails and file offsets cut between characters",
      "K14.2": "A child in a session of its own does not outlive Stop",
      "K14.3": "A rule's reply of 10 MB is refused, and the call denied",
      "K14.4": "A second decision is `already_decided`, also after the gate's restart",
      "K14.5": "Every known wording of an overflow is one, and so is a 200 with usage above the window",
      "K14.6": "Base addresses that end in a version or carry a query are kept",
      "K14.7": "Fields that a compatible server refuses can be left out",
      "K14.8": "An MCP-shaped result counts as its `isError` says, and its image is one",
      "K14.9": "An empty text is never sent",
      "K14.10": "A 403 for moderation is no key problem",
    },
  },
  {
    title: "Slots, quotas and registrations have owners",
    from: FAULT,
    rows: {
      "K5.1": "Turns that wait for slow models, however many, do not hold up a quick one",
      //
      // K5.2
      //
      "K5.3": "Channels count against the connection that made them, and go with it when nobody uses them",
      //
      "K5.4": "An agent's call that never answers gives its place back, and the worker's own calls are unmarked again",
      //
      // K5.5
      //
      // K5.6
      //
      // K5.7
      //
    },
  },
  {
    title: "Flow control neither drops nor stalls",
    from: FAULT,
    rows: {
      // K6.1
      //
      "K6.2": "A caller that reads its answers slowly slows or loses itself only",
      //
      // K6.3
      //
      // K6.4
      //
      // K6.5
      //
    },
  },
  {
    title: "What grows is bounded, and costs grow with the work",
    from: FAULT,
    rows: {
      // K9.1
      //
      // K9.2
      //
      // K9.3
      //
      // K9.4
      //
      // K9.5
      //
      "K9.6": "A look-up of one function reads no list of workers or bindings",
      //
      // K9.7
      //
      "K9.8": "Routes that leave together cost one new router, and only when one of them is in the way; they hide no other",
      //
      // K9.9
      //
      // K9.10
      //
      // K9.11
      //
      // K9.12
      //
      // K9.13
      //
      // K9.14
      //
    },
  },
  {
    title: "The store under damage",
    from: FAULT,
    rows: {
      // K10.1
      //
      "K10.2": "A full disk refuses additions as `STORE_FULL`; reads, deletes and denials go on, and it recovers without a restart",
      //
      // K10.3
      //
      // K10.4
      //
    },
  },
  {
    title: "People",
    from: USER,
    rows: {
      U1: "A double click on one approval decides no other",
      U2: "The environment overrides the config, whatever the file says",
      U4: "The banner waits for the state to settle, or is corrected",
      U5: "The worker that the SDK's README shows runs as it is printed",
      U6: "A worker folder that is laid out wrong is told what is missing",
      U7: "A syntax error in a worker: file, line and column, once",
      U9: "A turn that went well shows no errors",
      U11: "A broken rules file shows on the page, with its place",
      U14: "The demo model's mark breaks no code block",
      U15: "A failed turn looks failed",
      U18: "Focus goes to the next card, else to the message box",
      U24: "A denial gives a reason only if there is one",
      U33: "An unknown page and an unknown session are told so",
      U37: "A closed tab is no warning",
      U38: "The banner names the data folder in few words",
      U39: "`pnpm start` installs only what runs; every script brings what it needs",
      U40: "Ready means that the new process has announced itself",
      U41: "A restart of edited code runs the edited code",
      U42: "A rule that a slip of indentation would change is a fault at its place",
      U43: "The page stands without the workers that it can do without",
      U44: "The first provider with a key is the default",
      U45: "The picker says which models can run, and what the others need",
      U46: "A missing key is told with the next step",
      U47: "Traces carry their own turn's name; an unknown one is told so",
      U48: "A data folder that cannot hold files ends the start with the cause",
      U49: "Unknown keys in a worker's config are faults, in one pass",
      U50: "A worker without config is one",
      P9: "`group_by iii.session.id` counts turns; reads of a session are not its traces",
    },
  },
];

export const REQUIREMENTS: ReadonlyMap<string, string> = new Map(GROUPS.flatMap((group) => Object.entries(group.rows)));
