import { expect, test } from "vitest";
import { isLoopbackHost, refuse } from "../src/transport/guard.ts";

test.each([
  ["localhost", true],
  ["localhost:3111", true],
  ["127.0.0.1:3111", true],
  ["127.1.2.3", true],
  ["[::1]:80", true],
  ["LOCALHOST", true],
  ["localhost.evil.example", false],
  ["127.0.0.1.evil.example", false],
  ["127.0.0.999", false],
  ["0.0.0.0", false],
  ["[::]", false],
  ["evil.example", false],
  ["localhost:99999", false],
  ["", false],
])("host %j is this machine: %s", (host, expected) => {
  expect(isLoopbackHost(host)).toBe(expected);
});

const host = "127.0.0.1:3111";
test.each<[string, Record<string, string>, { method?: string; upgrade?: boolean }, number | undefined]>([
  ["a program without Origin may upgrade", { host }, { upgrade: true }, undefined],
  ["our own page may upgrade", { host, origin: `http://${host}` }, { upgrade: true }, undefined],
  ["a page of another port may not", { host, origin: "http://127.0.0.1:5173" }, { upgrade: true }, 403],
  ["an allowed origin may", { host, origin: "http://localhost:5173" }, { upgrade: true }, undefined],
  ["another site may not", { host, origin: "https://evil.example" }, { upgrade: true }, 403],
  ["an opaque origin may not", { host, origin: "null" }, { upgrade: true }, 403],
  ["a rebound name may not, though Origin equals Host", { host: "evil.example:3111", origin: "http://evil.example:3111" }, {}, 403],
  ["a browser that hides its Origin may not upgrade", { host, "sec-fetch-site": "cross-site" }, { upgrade: true }, 403],
  ["a same-origin upgrade without Origin may not", { host, "sec-fetch-site": "same-origin" }, { upgrade: true }, 403],
  ["a typed address may", { host, "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }, {}, undefined],
  ["an own asset may", { host, "sec-fetch-site": "same-origin", "sec-fetch-mode": "no-cors" }, {}, undefined],
  [
    "a followed link may",
    { host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    {},
    undefined,
  ],
  [
    "an image of another site may not",
    { host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
    {},
    403,
  ],
  [
    "a frame of another port may not",
    { host, "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
    {},
    403,
  ],
  ["a form of another site may not", { host, origin: "https://evil.example" }, { method: "POST" }, 403],
  ["a program may post", { host }, { method: "POST" }, undefined],
  ["no Host at all is a bad request", {}, {}, 400],
])("%s", (_title, headers, { method = "GET", upgrade = false }, status) => {
  expect(refuse({ method, headers, upgrade }, ["http://localhost:5173"])?.status).toBe(status);
});
