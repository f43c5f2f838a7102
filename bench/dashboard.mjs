/* What the dashboard costs for a sweep of many trials, in Chromium (run by hand, with a build folder
 * that has the page and the tests' packages):
 *
 *   node bench/dashboard.mjs [--trials 100000] [--json]
 *
 * A small server (tests/web/fixture.mjs) serves the built page and an invented sweep of 8 parameters
 * and 3 metrics; assayd's part is measured by bench/table.py. The floor of loading is fetching the
 * table and decoding it, and nothing else, in the same browser. One line for each case: value, what
 * was asked, floor. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

process.env.ASSAY_SOURCE_ROOT ??= dirname(dirname(fileURLToPath(import.meta.url)));
const { DIST, frames, openBrowser, rowsOf, until } = await import("../tests/web/browser.mjs");
const { startFixture, TOKEN } = await import("../tests/web/fixture.mjs");

const option = (name, fallback) => { const at = process.argv.indexOf(`--${name}`); return at < 0 ? fallback : Number(process.argv[at + 1]); };
const TRIALS = option("trials", 100_000);
const ROUNDS = 7;
const LIVE_S = 10;
const LIVE_A_SECOND = 50;

function tell(name, value, unit, asked, floor = null) {
  if (process.argv.includes("--json")) return console.log(JSON.stringify({ case: name, trials: TRIALS, value, unit, asked, floor }));
  return console.log(`${name.padEnd(44)} ${String(value).padStart(8)} ${unit.padEnd(4)} asked ${String(asked ?? "-").padStart(5)}   floor ${floor ?? "-"}`);
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** The processes below this one that draw pages: seconds of processor time and megabytes. */
function renderers() {
  const all = readdirSync("/proc").filter((n) => /^\d+$/.test(n)).flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return [{ pid, parent: fields[1], line: readFileSync(`/proc/${pid}/cmdline`, "utf8"), ticks: Number(fields[11]) + Number(fields[12]), rss: Number(fields[21]) * 4096 }];
    } catch {
      return []; // it has just ended
    }
  });
  const ours = new Set([String(process.pid)]);
  for (let more = true; more;) {
    more = false;
    for (const p of all) if (ours.has(p.parent) && !ours.has(p.pid)) more = Boolean(ours.add(p.pid));
  }
  const found = all.filter((p) => ours.has(p.pid) && p.line.includes("--type=renderer"));
  return { seconds: found.reduce((s, p) => s + p.ticks, 0) / 100, mb: Math.max(0, ...found.map((p) => p.rss)) / 1e6 };
}

const fixture = await startFixture(DIST);
fixture.invent("made", TRIALS, LIVE_S * LIVE_A_SECOND + 1000);
const browser = await openBrowser();
const { page, context } = browser;
await context.addInitScript(() => {
  window.long = [];
  new PerformanceObserver((list) => { for (const e of list.getEntries()) window.long.push(Math.round(e.duration)); }).observe({ type: "longtask", buffered: true });
});
const longest = () => page.evaluate(() => { const most = Math.max(0, ...window.long); window.long = []; return most; });

try {
  await page.goto(`${fixture.url}/#token=${TOKEN}`);
  const floors = [];
  for (let i = 0; i < 3; i++) {
    floors.push(await page.evaluate(async (token) => {
      const began = performance.now();
      const response = await fetch("/v1/sweeps/made/table", { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
      await response.arrayBuffer();
      return performance.now() - began;
    }, TOKEN));
  }
  const floor = Math.round(median(floors));
  const size = await page.evaluate((token) => fetch("/v1/sweeps/made/table", { headers: { Authorization: `Bearer ${token}` }, cache: "reload" }).then(async (r) => { const whole = (await r.arrayBuffer()).byteLength; return [performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/table")).at(-1)?.encodedBodySize ?? 0, whole]; }), TOKEN);

  let began = performance.now();
  await page.goto(`${fixture.url}/#/sweeps/made`);
  await page.reload({ waitUntil: "commit" });
  began = performance.now();
  await page.getByRole("heading", { name: "made", exact: true }).waitFor();
  await page.getByTestId("best").or(page.getByText("No trial has completed yet.")).first().waitFor();
  tell("head of the sweep", Math.round(performance.now() - began), "ms", 1500);
  const history = page.getByRole("region", { name: "History", exact: true });
  await until(page, "the chart", () => history.getAttribute("data-points").then(Number), (n) => n > 0);
  await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === TRIALS);
  await frames(page);
  tell("all trials in the page", Math.round(performance.now() - began), "ms", 4000, floor);
  tell("bytes of the table (gzip -1)", (size[0] / 1e6).toFixed(1), "MB", 6, (size[1] / 1e6).toFixed(1));
  await page.locator(".in-sight").scrollIntoViewIfNeeded();
  await page.getByRole("region", { name: "Parameters of all trials", exact: true }).waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await frames(page);
  tell("longest task while loading", await longest(), "ms", 50);

  /** The median time from an action to the second frame after the table has changed. */
  const measure = async (name, asked, act, changed) => {
    const times = [];
    let long = 0;
    for (let i = 0; i < ROUNDS; i++) {
      await longest();
      const before = await changed();
      await page.evaluate(() => {
        window.seen = new Promise((resolve) => {
          const observer = new MutationObserver(() => {
            observer.disconnect();
            requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
          });
          observer.observe([...document.querySelectorAll(".rows")].at(-1).querySelector("tbody"), { childList: true, subtree: true, characterData: true });
        });
      });
      const at = await act(i);
      const end = await page.evaluate(() => window.seen);
      times.push(end - at);
      await until(page, name, changed, (now) => now !== before);
      await frames(page);
      await frames(page);
      long = Math.max(long, await longest());
    }
    tell(name, Math.round(median(times)), "ms", asked);
    tell(`  its longest task`, long, "ms", 50);
  };
  const firstRow = () => page.evaluate(() => [...document.querySelectorAll(".rows")].at(-1).querySelector("tbody tr:not(.gap) a")?.textContent ?? "");
  await measure("sort by a column", 150, () => page.evaluate(() => { const at = performance.now(); [...document.querySelectorAll(".rows")].at(-1).querySelectorAll("thead th button")[2].click(); return at; }), firstRow);
  const rowCount = () => rowsOf(page, "Trials");
  await measure("filter, from the last key", 150, (i) => page.evaluate((text) => {
    const input = document.querySelector(".filter input");
    const at = performance.now();
    input.value = text;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    return at;
  }, `p1 < ${0.2 + 0.1 * (i % 7)} and p7 != 'lion'`), rowCount);

  await page.locator(".filter input").fill("");
  await until(page, "all rows", rowCount, (n) => n === TRIALS);
  await page.evaluate(() => { scrollTo(0, 0); });
  await new Promise((resolve) => { setTimeout(resolve, 3000); });
  tell("memory of the tab", Math.round(renderers().mb), "MB", 250);
  await longest();
  const idle = renderers().seconds;
  await new Promise((resolve) => { setTimeout(resolve, 1000 * LIVE_S); });
  const from = renderers().seconds;
  for (let i = 0; i < LIVE_S * 10; i++) {
    fixture.grow("made", LIVE_A_SECOND / 10);
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
  tell(`processor, ${LIVE_A_SECOND} new trials a second`, ((100 * (renderers().seconds - from)) / LIVE_S).toFixed(1), "%", 10, ((100 * (from - idle)) / LIVE_S).toFixed(1));
  tell("  its longest task", await longest(), "ms", 50);
  if (browser.errors.length > 0) console.error(browser.errors.join("\n"));
} finally {
  fixture.close();
  await browser.close();
}
