// The page when something is wrong: a socket that died without a word, an engine that is gone, layers that are absent, addresses that lead
// nowhere, hands that are too quick.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ConsolePage, openConsole, say, shows } from "../support/browser.ts";
import { quietProxy } from "../support/quiet-proxy.ts";
import { type Stack, startStack, until } from "../support/stack.ts";
import { ended, parked, transcript } from "../support/turns.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const PILL = ".topbar [role=status]";
const THREE = JSON.stringify(["./a", "./b", "./c"].map((path) => ({ function: "shell::fs::ls", payload: { path } })));

/** A page with three calls that wait for a decision, and the session. */
async function threeCards(browser: ConsolePage): Promise<string> {
  await say(browser.page, `calls ${THREE}`);
  await browser.page.locator(".approval").nth(2).waitFor();
  return browser.page.url().split("/").at(-1) ?? "";
}

/** Acts once, as soon as the first card takes a decision: it ignores what comes too early. */
async function decide({ page }: ConsolePage, act: () => Promise<void>): Promise<void> {
  const before = await page.locator(".approval").count();
  await page.locator(".approval").first().locator('[data-still="true"]').waitFor();
  await act();
  await until("one card to be decided", async () => (await page.locator(".approval").count()) < before || undefined);
}

test.each<[string, (browser: ConsolePage, at: { x: number; y: number }) => Promise<void>]>([
  ["a double click", ({ page }, { x, y }) => page.mouse.dblclick(x, y)],
  [
    "five quick clicks",
    async ({ page }, { x, y }) => {
      for (let n = 0; n < 5; n++) await page.mouse.click(x, y, { delay: 10 });
    },
  ],
  [
    "two taps",
    async ({ page }, { x, y }) => {
      await page.touchscreen.tap(x, y);
      await page.touchscreen.tap(x, y);
    },
  ],
  [
    "Enter held down",
    async ({ page }) => {
      await page.locator(".approval").first().getByRole("button", { name: "Allow once" }).focus();
      for (let n = 0; n < 8; n++) await page.keyboard.down("Enter");
      await page.keyboard.up("Enter");
    },
  ],
])("U1 %s at one place decides one call", async (_title, act) => {
  await using browser = await openConsole(stack.httpUrl, `/new${stack.pageKey}`, { hasTouch: true });
  const { page } = browser;
  const session_id = await threeCards(browser);
  await decide(browser, async () => {
    const box = await page.locator(".approval").first().getByRole("button", { name: "Allow once" }).boundingBox();
    if (box !== null) await act(browser, { x: box.x + 20, y: box.y + box.height / 2 });
  });
  // The turn's own record says what was decided: whatever the hand did, two calls still wait.
  await until("the decision to be taken", async () => (await parked(stack, session_id, 2)).length === 2 || undefined);
  expect(await page.locator(".approval").count()).toBe(2);
  expect(browser.errors).toEqual([]);
});

test("U18 after a decision the focus goes to the next card, after the last one to the message box", async () => {
  await using browser = await openConsole(stack.httpUrl, `/new${stack.pageKey}`);
  const { page } = browser;
  await page.locator("#message:focus").waitFor();
  await threeCards(browser);
  const focused = () => page.evaluate<string | undefined>("document.activeElement.dataset.call ?? document.activeElement.id");
  for (let left = 3; left > 0; left--) {
    const next = await page
      .locator(".approval")
      .nth(1)
      .getAttribute("data-call", { timeout: 500 })
      .catch(() => "message");
    await decide(browser, () => page.locator(".approval").first().getByRole("button", { name: "Deny" }).press("Enter"));
    await until(`the focus on ${next}`, async () => (await focused()) === next || undefined);
  }
  await shows(page, "stopped");
  await page.getByText("You denied this.").first().waitFor();
});

test("K12.1 a socket that dies in silence is noticed, the page dials again, and the turn's end is shown", async () => {
  await using proxy = await quietProxy(stack.httpUrl);
  await using browser = await openConsole(proxy.url, `/new${stack.pageKey}`);
  const { page } = browser;
  await say(page, "slow 3000 one two three four");
  await page.locator('[data-streaming="true"]').getByText("one").waitFor();
  // The state may be as short as one dial: it is noted, not waited for.
  await page.evaluate(`{
    window.links = [];
    const shell = document.querySelector(".shell");
    new MutationObserver(() => window.links.push(shell.dataset.link)).observe(shell, { attributes: true, attributeFilter: ["data-link"] });
  }`);
  proxy.silence();
  // Nobody tells the page anything: it must ask by itself, and give up waiting.
  await until("the page to dial again", async () => (await page.evaluate("window.links.includes('reconnecting')")) || undefined, 40_000);
  await shows(page, "stopped");
  await page.locator('[data-role="assistant"]').getByText("one two three four").waitFor();
  await page.locator(PILL).getByText("live").waitFor();
});

test("K12.1 a page that wakes up asks at once; while the engine is gone nothing is said to run", async () => {
  await using proxy = await quietProxy(stack.httpUrl);
  await using browser = await openConsole(proxy.url, `/new${stack.pageKey}`);
  const { page } = browser;
  await say(page, "slow 60000 one two three four");
  await page.locator('[data-streaming="true"]').getByText("one").waitFor();
  proxy.refuse(true);
  proxy.silence();
  const asked = Date.now();
  await page.evaluate("window.dispatchEvent(new Event('online'))");
  await page.locator('.shell[data-link="gone"]').waitFor({ timeout: 15_000 });
  expect(Date.now() - asked).toBeLessThan(15_000);
  await page.getByText("The engine is gone").waitFor();
  expect(await page.locator(".turn-state").textContent()).toContain("last seen: model is answering");
  expect(await page.locator(".spinner").count()).toBe(0);
  expect(await page.locator(".turn-state").getAttribute("data-tone")).not.toBe("busy");
  proxy.refuse(false);
  await page.locator('.shell[data-link="live"]').waitFor({ timeout: 15_000 });
  await page.getByRole("button", { name: "Stop" }).click();
  await shows(page, "stopped");
});

test.each([
  ["three hours behind", -3 * 3_600_000],
  ["three hours ahead", 3 * 3_600_000],
])("K8.3 a browser whose clock is %s counts down what the server said is left", async (_title, skew) => {
  await using browser = await openConsole(stack.httpUrl, "/new");
  const { page } = browser;
  await page.addInitScript(`Date.now = ((real) => () => real() + ${skew})(Date.now)`);
  await page.reload();
  await page.locator("select option", { hasText: "Demo" }).waitFor({ state: "attached" });
  await say(page, 'call shell::fs::ls {"path":"."}');
  const left = page.locator(".approval-head .num");
  await left.waitFor();
  expect(await left.textContent()).toMatch(/^expires in (29|30) min/);
  // What it writes is dated as the server would date it.
  const { messages } = await transcript(stack, page.url().split("/").at(-1) ?? "");
  expect(Math.abs((messages[0]?.timestamp ?? 0) - Date.now())).toBeLessThan(60_000);
  await page.getByRole("button", { name: "Stop" }).click();
  await shows(page, "stopped");
});

test("U33 an unknown page and an unknown session are told so, with ways out", async () => {
  await using browser = await openConsole(stack.httpUrl, "/traces");
  const { page } = browser;
  await page.getByRole("heading", { name: "There is no page at /traces." }).waitFor();
  await page.goto(`${stack.httpUrl}/chat/doesnotexist`);
  await page.getByRole("heading", { name: "There is no session 'doesnotexist'." }).waitFor();
  expect(await page.locator("#message").count()).toBe(0);
  await page.getByRole("link", { name: "New session" }).click();
  await page.locator("#message").waitFor();
  // A session that was just made is none of that, also when its page is loaded again.
  await page.reload();
  await page.getByRole("heading", { name: "What should it do?" }).waitFor();
  expect(browser.errors).toEqual([]);
});

test("the page takes its key out of the address before anything is shown, and other tabs get it", async () => {
  await using browser = await openConsole(stack.httpUrl, "/new#key=not-a-key");
  const { page } = browser;
  await page.locator("#message").waitFor();
  expect(page.url()).not.toContain("key=");
  const history = await page.evaluate<string>("JSON.stringify([location.href, document.referrer, history.state])");
  expect(history).not.toContain("not-a-key");
  // The engine does not know this key: the page says so and how to get another one.
  await page.getByText("no longer valid").first().waitFor({ timeout: 20_000 });
  await page
    .getByText(/iii open \/chat\//)
    .first()
    .waitFor();
  expect(await page.evaluate("sessionStorage.getItem('iii.key')")).toBe(null);
});

test("U43 without the layers that it can do without, the page stands, sends and shows the answer", async () => {
  const config = `version: 1
engine: { port: "\${III_PORT:-0}", http: { port: "\${III_HTTP_PORT:-0}" }, data: "\${III_DATA_DIR:-.iii}" }
workers:
  - name: turn-orchestrator
  - name: auth-credentials
  - name: provider-scripted
  - name: harness
    config: { policy: allow_all }
  - name: console
`;
  await using thin = await startStack({ config });
  await using browser = await openConsole(thin.httpUrl, "/");
  const { page } = browser;
  await page.getByText("The session worker is not running, so there is no list").waitFor();
  await say(page, "say thin and well");
  await page.locator('[data-role="assistant"]:not([data-streaming])').getByText("thin and well").waitFor();
  await shows(page, "stopped");
  expect(await page.getByText("function_not_found").count()).toBe(0);
  expect(await page.locator(".problem").count()).toBe(0);
  await page.reload();
  await page.locator('[data-role="assistant"]').getByText("thin and well").waitFor();
  await ended(thin, page.url().split("/").at(-1) ?? "");
  expect(browser.errors).toEqual([]);
});

test("U11 a broken rules file is told on the page, with its place", async () => {
  await using broken = await startStack({ permissions: "version: 1\nrules:\n  - functoin: shell::exec\n", ready: false });
  await until(
    "the page to be served",
    async () => (await fetch(broken.httpUrl)).headers.get("content-type")?.includes("html") || undefined,
  );
  await using browser = await openConsole(broken.httpUrl, "/new");
  await browser.page
    .locator(".notices")
    .getByText(/policy is down.*iii-permissions\.yaml:\d+:\d+/)
    .waitFor();
});
