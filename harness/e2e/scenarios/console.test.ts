// The console in a real browser, on a real stack: what a person sees and what a click does.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ConsolePage, openConsole, say, shows } from "../support/browser.ts";
import { REPO, type Stack, startStack, until } from "../support/stack.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const open = (): Promise<ConsolePage> => openConsole(stack.httpUrl, `/new${stack.pageKey}`);
const STREAMING = '[data-streaming="true"]';
const WORDS = "one two three four five six seven eight nine ten";

test("A2 the first word is on the page before the last one was sent; a reload in mid-turn shows what has streamed; the turn ends stopped", async () => {
  await using browser = await open();
  const { page } = browser;
  await say(page, `slow 4000 ${WORDS}`);
  await page.locator(STREAMING).getByText("one").waitFor();
  expect(await page.locator(STREAMING).textContent()).not.toContain("ten");
  await page.reload();
  await page.locator(STREAMING).getByText("one").waitFor();
  expect(await page.locator(STREAMING).count()).toBe(1);
  await shows(page, "stopped");
  await page.locator('[data-role="assistant"]').getByText(WORDS).waitFor();
  expect(await page.locator('[data-role="assistant"]').count()).toBe(1);
  expect(await page.locator('[data-role="user"]').count()).toBe(1);
  expect([browser.errors, browser.foreign]).toEqual([[], []]);
});

test("a card that appears while a person types takes no focus and no key; its button allows exactly that call", async () => {
  await using browser = await open();
  const { page } = browser;
  await say(page, 'call shell::fs::ls {"path":"."}');
  await page.keyboard.type("a a d d y ");
  const card = page.locator(".approval");
  await card.waitFor();
  await page.keyboard.type("a d y ");
  await page.keyboard.press("Space");
  expect(await page.evaluate("document.activeElement.id")).toBe("message");
  await shows(page, "function_awaiting_approval");
  expect(await card.locator("pre").textContent()).toBe('{\n  "path": "."\n}');
  await page.reload();
  await card.waitFor();
  const allow = card.getByRole("button", { name: "Allow once" });
  // A click right after the card appeared was meant for what stood there before, so the first ones may do nothing.
  await until("the card to be decided", async () => {
    await allow.click({ timeout: 500 }).catch(() => undefined);
    return (await card.count()) === 0 || undefined;
  });
  await shows(page, "stopped");
  expect(await page.locator(".tool").getAttribute("data-status")).toBe("done");
  expect(browser.errors).toEqual([]);
});

test("a decision made elsewhere closes the card, and says so", async () => {
  await using browser = await open();
  const { page } = browser;
  await say(page, 'call shell::exec {"command":"echo \u202e\u200b x"}');
  const card = page.locator(".approval");
  await card.waitFor();
  expect(await card.locator("pre").textContent()).toContain("\\u{202e}\\u{200b}");
  const session_id = page.url().split("/").at(-1);
  const [call] = await stack.trigger<{ function_call_id: string }[]>("approval::list_pending", { session_id });
  await stack.trigger("approval::resolve", {
    session_id,
    function_call_id: call?.function_call_id,
    decision: "deny",
    reason: "no",
    by: "cli",
  });
  await card.waitFor({ state: "detached" });
  await page.getByText("denied by a person").waitFor();
  await shows(page, "stopped");
});

test("a hostile answer stays text: no element, no request, no error", async () => {
  await using browser = await open();
  const { page } = browser;
  await say(page, 'say <img src="https://evil.example/a"> ![x](https://evil.example/b) [y](javascript:alert(1)) <script>alert(1)</script>');
  await shows(page, "stopped");
  const answer = page.locator('[data-role="assistant"]');
  await answer.getByText("<script>alert(1)</script>").waitFor();
  expect(await answer.locator("img, script, iframe, form, [onerror], a[href^=javascript]").count()).toBe(0);
  expect([browser.errors, browser.foreign]).toEqual([[], []]);
});

test("a page outlives the engine: it finds the next one by itself, the turn goes on and its end arrives", async () => {
  await using browser = await open();
  const { page } = browser;
  await say(page, `slow 3000 ${WORDS}`);
  await page.locator(STREAMING).getByText("one").waitFor();
  await stack.kill9("engine");
  stack = await stack.restart();
  await page.locator('[data-role="assistant"]:not([data-streaming])').getByText(WORDS).waitFor({ timeout: 60_000 });
  await shows(page, "stopped");
  expect(await page.locator('[data-role="assistant"]').count()).toBe(1);
});

test("the whole page weighs at most 64 KiB", () => {
  const dist = join(REPO, "workers/console/dist");
  const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const bytes = files.map((file) => gzipSync(readFileSync(join(file.parentPath, file.name)), { level: 9 }).byteLength);
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(64 * 1024);
});

test("a turn's trace is shown as one tree", async () => {
  await using browser = await open();
  const { page } = browser;
  await say(page, "say traced");
  await shows(page, "stopped");
  await page.getByRole("link", { name: "Trace", exact: true }).click();
  await page.locator(".row", { hasText: "execute harness::trigger" }).waitFor();
  await page.locator(".row", { hasText: "execute turn::" }).first().waitFor();
});
