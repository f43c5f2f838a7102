/* Chromium for the tests, and common helpers: a page whose errors are collected, named steps, a
 * skip with a reason, and functions that wait for a state instead of a time. Tests of one process share
 * one Chromium (chromium.mjs); each has a context of its own, which knows nothing of the others. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { late, SLOW, SLOW_TEST_MS, THROTTLE } from "./slow.mjs";

export const SOURCE = process.env.ASSAY_SOURCE_ROOT ?? new URL("../..", import.meta.url).pathname;
export const BUILD = process.env.ASSAY_BUILD_ROOT ?? join(SOURCE, "build");
export const DIST = join(BUILD, "web", "dist");
export const PATIENCE_MS = Number(process.env.ASSAY_WEB_PATIENCE_MS ?? 300_000); // reached only by a state that never comes
const TOOLS = join(BUILD, "tests", "web", "tools");
const ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export function skip(reason) {
  console.log(`skipped: ${reason}`);
  process.exit(77);
}

/** Packages of the tests, by require(). The build installed them, so a test needs no registry. */
export function tools() {
  const stamp = join(TOOLS, "node_modules", ".assay-stamp");
  const lock = readFileSync(join(SOURCE, "tests/web/package-lock.json"), "utf8");
  assert.ok(existsSync(stamp) && readFileSync(stamp, "utf8") === lock, `${TOOLS} is not as tests/web/package-lock.json says: ninja -C ${BUILD} tests/web/packages.stamp`);
  return createRequire(join(TOOLS, "here.cjs"));
}

/** Chromium without its windows, which takes two thirds of the processor time for the same pages; else the whole of it. */
const PATHS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

function chromiumPath() {
  const paths = process.env.CHROMIUM ? [process.env.CHROMIUM] : PATHS;
  return paths.find((path) => existsSync(path)) ?? skip(`there is no Chromium at ${paths.join(" or ")} (CHROMIUM names another)`);
}

/** Remove a folder, although programs that were just stopped may still write to it. */
export const remove = (folder) => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });

let chromium = null; // a promise of the one of this process
let isKept = false;  // a test that ends leaves it to the next one

function startChromium() {
  const options = { executablePath: chromiumPath(), args: ARGS, timeout: PATIENCE_MS, slowMo: SLOW_TEST_MS };
  return tools()("playwright-core").chromium.launch(options);
}

async function endChromium() {
  const ended = await chromium;
  chromium = null;
  await ended?.close();
}

/** Several tests in one Chromium: it ends after `work`, not after each of them. */
export async function inOneChromium(work) {
  isKept = true;
  await work().finally(endChromium);
}

/** A context of its own in Chromium, with one page. `errors` collects all errors of its pages. */
export async function openBrowser() {
  if (!existsSync(join(DIST, "index.html"))) skip(`the dashboard is not built (${DIST})`);
  chromium ??= startChromium();
  const context = await (await chromium).newContext({ viewport: { width: 1440, height: 900 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const errors = [];
  const expected = [];
  const note = (text) => { if (!expected.some((e) => e.test(text))) errors.push(text); };
  const watch = (seen) => {
    seen.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") note(`console: ${m.text()} ${m.location().url}`); });
    seen.on("pageerror", (e) => note(`error: ${e.stack}`));
    seen.on("dialog", (d) => { note(`dialog: ${d.message()}`); void d.dismiss(); });
  };
  context.on("page", watch);
  const page = await context.newPage();
  const debug = await context.newCDPSession(page);
  const throttle = (rate) => debug.send("Emulation.setCPUThrottlingRate", { rate });
  if (THROTTLE > 1) await throttle(THROTTLE);
  return {
    context, errors, page,
    /** From now on, errors that match are expected. */
    expect: (pattern) => expected.push(pattern),
    /** A step that only computes; the slow mode does not delay it. */
    atFullSpeed: async (work) => {
      if (THROTTLE === 1) return work();
      await throttle(1);
      const result = await work();
      await throttle(THROTTLE);
      return result;
    },
    close: async () => {
      await context.close();
      if (!isKept) await endChromium();
    },
  };
}

/** In the slow mode, requests to a server that is not the fixture are delayed in both directions;
 * streams only at their beginning. */
export async function slowNetwork(context) {
  if (!SLOW) return;
  await context.route("**/*", async (route) => {
    try {
      await late(0.5);
      if (route.request().url().endsWith("/events")) return await route.continue();
      const response = await route.fetch({ maxRedirects: 0, timeout: PATIENCE_MS });
      await late(0.5);
      return await route.fulfill({ response });
    } catch {
      return route.abort().catch(() => undefined); // the page left before the answer
    }
  });
}

export async function step(name, work) {
  const began = Date.now();
  try {
    await work();
  } catch (error) {
    console.error(`not ok: ${name}`);
    throw error;
  }
  console.log(`ok: ${name} (${Date.now() - began} ms)`);
}

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 320;

/** Wait until `look` returns a wanted value. It is called again after pauses that grow: a look is work for the page,
 * too, and what comes late is mostly a rest of the page, or of the server, of seconds. */
export async function until(page, what, look, wanted, expected = "") {
  const end = Date.now() + PATIENCE_MS;
  let last;
  let pause = FIRST_PAUSE_MS;
  do {
    last = await look();
    if (wanted(last)) return last;
    await page.waitForTimeout(pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  } while (Date.now() < end);
  return assert.fail(`${what}: still ${JSON.stringify(last)} after ${PATIENCE_MS} ms${expected}`);
}

/** Wait until `look` returns exactly the expected value. */
export const shows = (page, what, look, expected) => until(page, what, look, (seen) => isDeepStrictEqual(seen, expected), `, expected ${JSON.stringify(expected)}`);

/** Wait until the text that `look` returns matches. */
export const matches = (page, what, look, pattern) => until(page, what, look, (seen) => pattern.test(seen ?? ""), `, expected ${pattern}`);

/** Wait until the page's address matches; page.url() lags behind changes by the page itself. */
export const addressMatches = (page, pattern) => matches(page, "the address", () => page.evaluate(() => location.href), pattern);

/** Run an action that leads to another view, and wait until the new view has replaced the old
 * one. */
export async function leave(page, work) {
  await page.evaluate(() => document.querySelector("main")?.setAttribute("data-left", ""));
  const result = await work();
  await page.locator("main:not([data-left])").waitFor();
  return result;
}

const AXE_RULES = { light: { rules: { "page-has-heading-one": { enabled: true } } }, dark: { runOnly: ["color-contrast", "link-in-text-block"] } };

/** What axe finds wrong with the view, which is called `name` in the texts: `rules` in the theme in which it is, of what
 * the selector `part` names. Rows of a table are alike: of each, the first eight are looked at, which halves what a view
 * with all its trials has. Only texts leave the page: playwright takes a minute for all that axe says about what is right. */
async function axe({ page, atFullSpeed }, name, rules, part) {
  // By the debugger, because the page's policy forbids a script element; a document keeps it.
  if (await page.evaluate(() => window.axe === undefined)) await page.evaluate(readFileSync(tools().resolve("axe-core/axe.min.js"), "utf8"));
  const found = await atFullSpeed(() => page.evaluate(async ([include, of]) => {
    const { violations, passes, incomplete } = await window.axe.run({ include: [[include]], exclude: [["tbody tr:nth-child(n+9)"]] }, { ...of, resultTypes: ["violations"] });
    return { checked: violations.length + passes.length + incomplete.length, texts: violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" ")}`) };
  }, [part, rules]));
  assert.ok(found.checked > 0, `axe looked at nothing of ${name}`);
  return found.texts.map((text) => `${name} ${text}`);
}

/** Open each view once, and let axe look at it: at all in the light theme, and at what depends on colours in the dark one,
 * too. A view is { open, part }: where others show the rest of the page, `part` is the selector of what only this one has.
 * `look(name, theme)` is called before. */
export async function accessible(browser, views, look = () => undefined) {
  const { page } = browser;
  await page.mouse.move(0, 0); // nothing may be under the pointer
  for (const [name, { open, part = "html" }] of Object.entries(views)) {
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
    await open();
    await shows(page, "what is loading", () => page.getByText("Loading…").count(), 0);
    for (const [colorScheme, rules] of Object.entries(AXE_RULES)) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await shows(page, "the theme", () => page.locator("html").getAttribute("data-theme"), colorScheme);
      await look(name, colorScheme);
      assert.deepEqual(await axe(browser, `${name} (${colorScheme})`, rules, part), []);
    }
  }
}

/** The selector of a panel, and of an open dialog. */
export const panelNamed = (name) => `[aria-label="${name}"]`;
export const DIALOG = "dialog[open]";

/** Wait for two frames (or more): then the effects of a scroll or a resize have happened. */
export const frames = (page, n = 2) => page.evaluate((count) => new Promise((resolve) => {
  const next = (left) => (left === 0 ? resolve() : requestAnimationFrame(() => next(left - 1)));
  next(count);
}), n);

/** Keep an element visible until `look` returns a wanted value; content that appears above may move
 * it away. */
export const untilInSight = (page, what, locator, look, wanted) => until(page, what, async () => {
  await locator.scrollIntoViewIfNeeded();
  return look();
}, wanted);

/** The text of each visible cell of one column of a table, by its heading. */
export async function column(page, table, heading) {
  return page.getByRole("region", { name: table, exact: true }).evaluate((region, name) => {
    const at = [...region.querySelectorAll("thead th")].findIndex((th) => th.innerText.replace(/[▲▼]/g, "").trim() === name);
    return [...region.querySelectorAll("tbody tr:not(.gap)")].map((tr) => tr.children[at]?.innerText.trim() ?? "");
  }, heading);
}

/** The number of rows of a table, including invisible ones. */
export const rowsOf = (page, table) => page.getByRole("region", { name: table, exact: true }).locator("table").getAttribute("aria-rowcount").then((n) => Number(n) - 1);

/** Click a table's heading and check the resulting order, "ascending" or "descending". */
export async function orderBy(page, table, heading, direction) {
  const th = page.getByRole("region", { name: table, exact: true }).locator("thead th").filter({ has: page.locator("button", { hasText: heading }) }).first();
  await th.locator("button").click();
  await until(page, `the order of ${heading}`, () => th.getAttribute("aria-sort"), (order) => order === direction);
}
