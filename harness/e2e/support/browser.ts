// A real browser on the console of one stack. Whatever it logs, fails to load or asks of another origin is kept for the test to judge.
import chromium from "@sparticuz/chromium";
import { type Browser, type BrowserContextOptions, type Page, chromium as playwright } from "playwright-core";

export interface ConsolePage extends AsyncDisposable {
  readonly page: Page;
  /** Errors that the page threw or logged, policy violations included. */
  readonly errors: string[];
  /** Requests to any other origin than the page's own. */
  readonly foreign: string[];
}

/** Opens the console at `path`, in a browser of its own that ends with it. */
export async function openConsole(httpUrl: string, path = "/", options: BrowserContextOptions = {}): Promise<ConsolePage> {
  const browser: Browser = await playwright.launch({
    executablePath: await chromium.executablePath(),
    args: chromium.args,
    headless: true,
  });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...options });
  const errors: string[] = [];
  const foreign: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  page.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(httpUrl).host) foreign.push(request.url());
  });
  await page.goto(`${httpUrl}${path}`);
  return { page, errors, foreign, [Symbol.asyncDispose]: () => browser.close() };
}

/** Posts a message as a person would. */
export async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
}

/** Waits until the page shows that the turn is in this state. */
export async function shows(page: Page, state: string): Promise<void> {
  await page.locator(`.turn-state[data-state="${state}"]`).waitFor();
}
