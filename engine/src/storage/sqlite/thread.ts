// The storage thread: the only place that writes to the database file. One request at a time, one transaction per request.
import { parentPort, workerData } from "node:worker_threads";
import { type Database, openDatabase, refusalOf } from "./database.ts";
import type { Reply, Request, Setting } from "./protocol.ts";
import { rowsOf } from "./rows.ts";

const setting = workerData as Setting;

function serve({ db, opened, close }: Database): (request: Request) => Reply {
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
        rows.commit(request.writes);
        return { ok: true };
      case "close":
        close();
        return { ok: true };
    }
  };
}

let handle: ((request: Request) => Reply) | undefined;
let broken: Reply | undefined;

function answer(request: Request): Reply {
  if (request.type === "close" && handle === undefined) return broken ?? { ok: true };
  if (broken !== undefined && request.type !== "close") return broken;
  try {
    handle ??= serve(openDatabase(setting));
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
