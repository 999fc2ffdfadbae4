// Who may do what, as data: the one table of protected ids, scopes, streams and queues. `access.ts` decides by it.
// `*` stands for any run of characters; `!` in front takes ids out of the row's own list again.

/** A scope, stream or queue and the ids whose provider owns it. */
export interface OwnerRow {
  readonly name: string;
  /** An entry that provides one of these ids owns the name. */
  readonly owner: readonly string[];
}

export interface AccessTable {
  /** Functions and trigger types that only an entry which `provides` them may register. */
  readonly claims: readonly string[];
  /** Deciding and administering: the operator's key, or an entry whose manifest lists them under `calls`. */
  readonly decides: readonly string[];
  /** Refused to a call made for an agent, at any depth. */
  readonly closed_to_agents: readonly string[];
  /** Reads that name one session: a call made for an agent must name its own. */
  readonly session_reads: readonly string[];
  /** State scopes and streams. */
  readonly scopes: readonly OwnerRow[];
  readonly queues: readonly OwnerRow[];
  /** Reached by the dispatch of the worker that provides them, for an agent: never nested in a tool, and by nobody else. */
  readonly dispatched: readonly string[];
  /** What a browser with a key may call of `auth::*`. */
  readonly browser_auth: readonly string[];
}

const TURN = ["turn::step"];
const TREE = ["session-tree::append"];

/** Reads of the control plane that change nothing and show no session. */
const OPEN_READS = [
  "!approval::list_pending",
  "!budget::check",
  "!budget::get",
  "!budget::list",
  "!budget::usage",
  "!budget::forecast",
  "!worker::list",
  "!turn::get_state",
];
const SESSION_READS = ["session-tree::messages", "session-tree::tree", "session-inbox::peek"];

/** Ids of the control plane that decide or administer: the read-only ones are taken out. */
const DECIDES = [
  "approval::*",
  "policy::*",
  "auth::*",
  "worker::*",
  "configuration::set",
  "budget::*",
  "turn::*",
  "session-tree::*",
  "session-inbox::*",
  "iii::queue::*",
  "engine::operators::*",
  "engine::traces::clear",
  "engine::logs::clear",
  ...OPEN_READS,
];

export const ACCESS: AccessTable = {
  claims: [
    "policy::*",
    "approval::*",
    "auth::*",
    "run::*",
    "turn::*",
    "session-tree::*",
    "session-inbox::*",
    "budget::*",
    "hook-fanout::*",
    "models::*",
    "harness::*",
    "worker::*",
    "configuration::*",
    "hook::*",
    "ui::subscribe",
    "ui::unsubscribe",
  ],
  decides: [...DECIDES, ...SESSION_READS.map((id) => `!${id}`), "!session-tree::list", "!session-tree::export_html"],
  closed_to_agents: [
    ...DECIDES,
    ...SESSION_READS.map((id) => `!${id}`),
    "run::*",
    "!run::spawn",
    "harness::*",
    "ui::*",
    "http::static",
    "models::register",
    "models::reconcile",
  ],
  session_reads: ["turn::get_state", "approval::list_pending", ...SESSION_READS],
  scopes: [
    { name: "session", owner: TURN },
    { name: "session_index", owner: TURN },
    { name: "active_turns", owner: TURN },
    { name: "results", owner: TURN },
    { name: "agent::*", owner: TURN },
    { name: "approvals", owner: ["approval::resolve", ...TURN] },
    { name: "approvals_decided", owner: ["approval::resolve"] },
    { name: "session_tree", owner: TREE },
    { name: "session_tree:*", owner: TREE },
    { name: "session_tree_*", owner: TREE },
    { name: "session_inbox*", owner: ["session-inbox::push", ...TURN] },
    { name: "budgets", owner: ["budget::record"] },
    { name: "vault", owner: ["auth::set_token"] },
    { name: "models", owner: ["models::register"] },
  ],
  queues: [{ name: "turn-step", owner: TURN }],
  dispatched: ["run::spawn"],
  browser_auth: ["auth::set_token", "auth::status", "auth::list_providers"],
};
