/* Chromium for the tests, and what every test wants of it: a page whose errors are collected, steps with
 * names, a skip that says why. Packages come from tests/web/package-lock.json and are installed below the
 * build folder, so that building the dashboard needs none of them. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const SOURCE = process.env.ASSAY_SOURCE_ROOT ?? new URL("../..", import.meta.url).pathname;
export const BUILD = process.env.ASSAY_BUILD_ROOT ?? join(SOURCE, "build");
export const DIST = join(BUILD, "web", "dist");
export const PATIENCE_MS = 20_000;
const TOOLS = join(BUILD, "tests", "web", "tools");
const ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export function skip(reason) {
  console.log(`skipped: ${reason}`);
  process.exit(77);
}

/** Packages of the tests, as require() gives them. */
export function tools() {
  const lock = readFileSync(join(SOURCE, "tests/web/package-lock.json"), "utf8");
  const stamp = join(TOOLS, "node_modules", ".assay-stamp");
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== lock) {
    mkdirSync(TOOLS, { recursive: true });
    for (const name of ["package.json", "package-lock.json", ".npmrc"]) copyFileSync(join(SOURCE, "tests/web", name), join(TOOLS, name));
    const npm = spawnSync("npm", ["ci", "--prefer-offline"], { cwd: TOOLS, encoding: "utf8" });
    if (npm.error) skip("npm is not installed");
    assert.equal(npm.status, 0, `npm ci in ${TOOLS}: ${npm.stderr}`);
    writeFileSync(stamp, lock);
  }
  return createRequire(join(TOOLS, "here.cjs"));
}

function chromiumPath() {
  const path = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(path)) skip(`there is no Chromium at ${path} (CHROMIUM names another)`);
  return path;
}

/** A browser with a profile of its own. `errors` fills with whatever a page complains of. */
export async function openBrowser() {
  if (!existsSync(join(DIST, "index.html"))) skip(`the dashboard is not built (${DIST})`);
  const executablePath = chromiumPath();
  const { chromium } = tools()("playwright-core");
  const profile = mkdtempSync(join(tmpdir(), "assay-web-"));
  const context = await chromium.launchPersistentContext(profile, { executablePath, args: ARGS, viewport: { width: 1440, height: 900 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const errors = [];
  const expected = [];
  const note = (text) => { if (!expected.some((e) => e.test(text))) errors.push(text); };
  const watch = (page) => {
    page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") note(`console: ${m.text()} ${m.location().url}`); });
    page.on("pageerror", (e) => note(`error: ${e.stack}`));
    page.on("dialog", (d) => { note(`dialog: ${d.message()}`); void d.dismiss(); });
  };
  context.pages().forEach(watch);
  context.on("page", watch);
  return {
    context, errors, page: context.pages()[0] ?? (await context.newPage()),
    /** From here on, complaints that match are what the test asked for. */
    expect: (pattern) => expected.push(pattern),
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
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

/** Wait until `look` gives what is wanted; asks again whenever the page may have changed. */
export async function until(page, what, look, wanted) {
  const end = Date.now() + PATIENCE_MS;
  let last;
  do {
    last = await look();
    if (wanted(last)) return last;
    await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve, 20)); }));
  } while (Date.now() < end);
  return assert.fail(`${what}: still ${JSON.stringify(last)} after ${PATIENCE_MS} ms`);
}

/** The text of each visible cell of one column of a table, by its heading. */
export async function column(page, table, heading) {
  return page.getByRole("region", { name: table, exact: true }).evaluate((region, name) => {
    const at = [...region.querySelectorAll("thead th")].findIndex((th) => th.innerText.replace(/[▲▼]/g, "").trim() === name);
    return [...region.querySelectorAll("tbody tr:not(.gap)")].map((tr) => tr.children[at]?.innerText.trim() ?? "");
  }, heading);
}

/** Order a table by a heading: once, or a second time for the other direction. */
export const orderBy = (page, table, heading) => page.getByRole("region", { name: table, exact: true }).locator("thead button", { hasText: heading }).first().click();
