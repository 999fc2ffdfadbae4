// The session worker: the transcript of every session, as a tree. Storage only: no triggers, no knowledge of turns.
import { defineWorker } from "@iii/sdk";
import { Config } from "./config.ts";
import { appendBatch, appendEntry, createSession, ensureSession, listSessions, sessionMessages } from "./contract.ts";
import { Sessions } from "./sessions.ts";
import { stateStore } from "./store.ts";

export const worker = defineWorker({
  name: "session",
  config: Config,
  register(on, { iii, clock, random }) {
    const sessions = new Sessions({ store: stateStore(iii), clock, random });
    on(createSession, async (labels) => ({ session_id: await sessions.create(labels) }));
    on(ensureSession, async ({ session_id, ...labels }) => {
      await sessions.ensure(session_id, labels);
      return { session_id };
    });
    on(appendEntry, async ({ session_id, parent_id, entry_id, message, create }) => {
      const entry_ids = entry_id === undefined ? undefined : [entry_id];
      const [made = ""] = await sessions.append({ session_id, parent_id, entry_ids, messages: [message], create });
      return { entry_id: made };
    });
    on(appendBatch, async (request) => ({ entry_ids: await sessions.append(request) }));
    on(sessionMessages, ({ session_id, branch_leaf }) => sessions.messages(session_id, branch_leaf));
    on(listSessions, (query) => sessions.list(query));
  },
});
