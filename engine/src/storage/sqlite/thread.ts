// The storage thread: the only place that writes to the database file. One request at a time, one transaction per request.
import { dirname } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { type Database, isFull, openDatabase, refusalOf } from "./database.ts";
import type { Reply, Request, Setting } from "./protocol.ts";
import { type Rows, rowsOf } from "./rows.ts";
import { Space } from "./space.ts";

const setting = workerData as Setting;

type Commit = Extract<Request, { type: "commit" }>;

/** Gives up the reserve when it must, and says `STORE_FULL` to what may not use it. @throws any other failure, which is final. */
function commit(rows: Rows, space: Space, { writes, small }: Commit): Reply {
  if (space.look() && !small) return refusalOf(setting.file, { errcode: 13 });
  const knew = space.full;
  try {
    rows.commit(writes);
  } catch (thrown) {
    if (!isFull(thrown)) throw thrown;
    space.exhausted();
    if (small && !knew) return commit(rows, space, { type: "commit", writes, small });
    return refusalOf(setting.file, thrown);
  }
  return { ok: true, full: space.full };
}

function serve({ db, opened, close }: Database, space: Space): (request: Request) => Reply {
  const rows = rowsOf(db);
  return (request) => {
    switch (request.type) {
      case "open":
        return { ok: true, opened };
      case "load":
        return { ok: true, rows: rows.all() };
      case "get":
        return { ok: true, rows: rows.one(request.space, request.key) };
      case "range":
        return { ok: true, ...rows.page(request.space, request.after ?? "", request.prefix, request.limit) };
      case "commit":
        return commit(rows, space, request);
      case "space":
        space.refill();
        return { ok: true, full: space.full };
      case "close":
        close();
        return { ok: true };
    }
  };
}

function open(): (request: Request) => Reply {
  const space = new Space(dirname(setting.file), setting.reserve);
  // Opening takes some space as well.
  space.look();
  return serve(openDatabase(setting), space);
}

let handle: ((request: Request) => Reply) | undefined;
let broken: Reply | undefined;

function answer(request: Request): Reply {
  if (request.type === "close" && handle === undefined) return broken ?? { ok: true };
  if (broken !== undefined && request.type !== "close") return broken;
  try {
    handle ??= open();
    return handle(request);
  } catch (thrown) {
    broken = refusalOf(setting.file, thrown);
    return broken;
  }
}

parentPort?.on("message", (request: Request) => {
  parentPort?.postMessage(answer(request));
  if (request.type === "close") parentPort?.close();
});
