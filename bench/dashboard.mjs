/* Drives Chromium for bench/dashboard.py, which says what is measured and starts this. With BENCH_PEER
 * it measures the page of a study in optuna-dashboard instead. One line for each case: value, what was
 * asked, floor.
 *
 * Memory, and what new trials cost, are those of a tab that nobody inspects, as people have it (plain_tab.mjs). */
import { memoryOf, openPlainTab, processOf, renderers } from "./plain_tab.mjs";

process.env.CHROMIUM ??= "/usr/bin/chromium"; // figures are of the whole browser, which people have
const { frames, openBrowser, rowsOf, until } = await import("../tests/web/browser.mjs");

const { BENCH_URL: URL_, BENCH_TOKEN: TOKEN, BENCH_SWEEP: SWEEP, BENCH_SERVER: SERVER, BENCH_PEER: PEER } = process.env;
const TRIALS = Number(process.env.BENCH_TRIALS);
const ROUNDS = 21;
const LIVE_S = 10;
const LIVE_A_SECOND = 50;
const AT_ONCE = 5; // new trials in a request
const SETTLE_MS = 3000;
const REST_MS = 10_000; // a tab that is left alone
const ACTION_MS = 250;
const HEADERS = { Authorization: `Bearer ${TOKEN}` };

function tell(name, value, unit, asked, floor = null) {
  if (process.argv.includes("--json")) return console.log(JSON.stringify({ case: name, trials: TRIALS, value, unit, asked, floor }));
  return console.log(`${String(TRIALS).padStart(9)}  ${name.padEnd(46)} ${String(value).padStart(8)} ${unit.padEnd(3)} asked ${String(asked ?? "-").padStart(5)}   floor ${floor ?? "-"}`);
}

const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const part = (list, share) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))];

const browser = await openBrowser();
const { page, context } = browser;
await context.addInitScript(() => {
  window.long = [];
  new PerformanceObserver((list) => { for (const e of list.getEntries()) window.long.push(Math.round(e.duration)); }).observe({ type: "longtask", buffered: true });
});
const longest = (of = page) => of.evaluate(() => { const most = Math.max(0, ...window.long); window.long = []; return most; });

/** Fetch the table in a page as the page of a sweep does, and nothing else: ms, bytes as they came, bytes. */
async function fetchTable() {
  const other = await context.newPage();
  await other.goto(`${URL_}/#/sweeps`);
  const found = await other.evaluate(async ([path, headers]) => {
    const began = performance.now();
    const response = await fetch(path, { headers, cache: "no-store" });
    const body = await response.arrayBuffer();
    const ms = performance.now() - began;
    const head = new DataView(body, 0, 16);
    JSON.parse(new TextDecoder().decode(new Uint8Array(body, 16, head.getUint32(8, true))));
    await new Promise((resolve) => { setTimeout(resolve, 0); });
    return { ms, sent: Number(response.headers.get("content-length")), whole: body.byteLength };
  }, [`${URL_}/v1/sweeps/${SWEEP}/table?layout=planes`, HEADERS]);
  await other.close();
  return found;
}

/** Open the sweep in a fresh page of the application: ms until the best value, and until all trials are there. */
async function load() {
  await page.goto("about:blank");
  await page.goto(`${URL_}/#/sweeps`);
  await page.getByRole("heading", { name: "Sweeps", exact: true }).waitFor();
  await page.goto("about:blank");
  const began = performance.now();
  await page.goto(`${URL_}/#/sweeps/${SWEEP}`, { waitUntil: "commit" });
  await page.getByTestId("best").waitFor();
  const useful = performance.now() - began;
  await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === TRIALS);
  const history = page.getByRole("region", { name: "History", exact: true });
  await until(page, "the chart", () => history.getAttribute("data-points").then(Number), (n) => n > 0);
  await frames(page);
  return { useful, all: performance.now() - began };
}

/** Processor time of the longest task and of all tasks of the page's main thread, ms: a busy machine makes the time
 * by the clock longer, and this hardly. */
async function traced(work) {
  const chromium = context.browser();
  await chromium.startTracing(page, { categories: ["toplevel", "disabled-by-default-devtools.timeline", "devtools.timeline", "__metadata"] });
  await work();
  const { traceEvents } = JSON.parse((await chromium.stopTracing()).toString());
  const tasks = new Map();
  for (const e of traceEvents) {
    if (e.tdur === undefined || !/RunTask$/.test(e.name)) continue;
    const thread = `${e.pid}.${e.tid}`;
    tasks.set(thread, [...(tasks.get(thread) ?? []), e.tdur / 1000]);
  }
  const mains = traceEvents.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map((e) => tasks.get(`${e.pid}.${e.tid}`) ?? []);
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const main = mains.reduce((a, b) => (sum(b) > sum(a) ? b : a), []);
  return { longest: Math.max(0, ...main), all: sum(main) };
}

async function measureLoading() {
  const cold = await load(); // the server has not read the sweep yet
  const warm = [];
  for (let i = 0; i < 3; i++) warm.push(await load());
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await wait(1500);
  await page.evaluate(() => scrollTo(0, 0));
  await frames(page);
  const long = await longest();
  const processor = [];
  for (let i = 0; i < 5; i++) processor.push(await traced(load));
  const floors = [await fetchTable(), await fetchTable(), await fetchTable()];
  const floor = Math.round(part(floors.map((f) => f.ms), 0.5));
  tell("first useful view, the first viewer", Math.round(cold.useful), "ms", 1500);
  tell("first useful view", Math.round(part(warm.map((w) => w.useful), 0.5)), "ms", 1500);
  tell("all trials in the page, the first viewer", Math.round(cold.all), "ms", 4000);
  tell("all trials in the page", Math.round(part(warm.map((w) => w.all), 0.5)), "ms", 4000, floor);
  tell("bytes of the table as sent", (floors[0].sent / 1e6).toFixed(2), "MB", 6, (floors[0].whole / 1e6).toFixed(1));
  tell("longest task while loading", long, "ms", 50);
  tell("the same, processor time", Math.round(part(processor.map((t) => t.longest), 0.5)), "ms", 50);
  tell("loading: all tasks of the main thread, processor", Math.round(part(processor.map((t) => t.all), 0.5)), "ms", null);
}

/** The time from an action to the second frame after the rows have changed. */
async function measureAction(name, act, seen) {
  const times = [];
  let long = 0;
  for (let i = 0; i < ROUNDS; i++) {
    await longest();
    const before = await seen();
    await page.evaluate(() => {
      window.seen = new Promise((resolve) => {
        const observer = new MutationObserver(() => {
          observer.disconnect();
          requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
        });
        // Its number of rows is an attribute: a filter may leave those in sight as they are.
        observer.observe([...document.querySelectorAll(".rows")].at(-1).querySelector("table"), { childList: true, subtree: true, characterData: true, attributeFilter: ["aria-rowcount"] });
      });
    });
    const at = await act(i);
    times.push((await page.evaluate(() => window.seen)) - at);
    await until(page, name, seen, (now) => now !== before);
    await frames(page);
    long = Math.max(long, await longest());
  }
  tell(`${name}, p50`, Math.round(part(times, 0.5)), "ms", 150);
  tell(`${name}, p95`, Math.round(part(times, 0.95)), "ms", 150);
  tell(`${name}, longest task`, long, "ms", 50);
}

/** For a page: sorts by a column. The time of the click. */
const sortBy = (column) => { const at = performance.now(); [...document.querySelectorAll(".rows")].at(-1).querySelectorAll("thead th button")[column].click(); return at; };

/** For a page: types a filter. The time of the last key. */
const filterBy = (text) => {
  const input = document.querySelector(".filter input");
  const at = performance.now();
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  return at;
};

const columnOf = (round) => 2 + (round % 4);
const filterOf = (round) => `lr < ${0.2 + 0.03 * round} and kind != 'lion'`;

async function measureActions() {
  const firstRow = () => page.evaluate(() => [...document.querySelectorAll(".rows")].at(-1).querySelector("tbody tr:not(.gap) a")?.textContent ?? "");
  await measureAction("sort by a column", (i) => page.evaluate(sortBy, columnOf(i)), firstRow);
  await measureAction("filter, from the last key", (i) => page.evaluate(filterBy, filterOf(i)), () => rowsOf(page, "Trials"));
  await page.locator(".filter input").fill("");
  await until(page, "all rows", () => rowsOf(page, "Trials"), (n) => n === TRIALS);
}

/** Add trials with results at the rate, for LIVE_S seconds. */
async function addTrials() {
  const one = () => ({ params: { lr: Math.random(), momentum: 0.5, decay: 0.5, dropout: 0.5, gamma: 0.5, layers: 1, kind: "sgd", norm: "batch" }, metrics: { loss: 1 + Math.random(), accuracy: 0.1, seconds: 1 } });
  const began = performance.now();
  for (let n = 0; n < LIVE_S * LIVE_A_SECOND; n += AT_ONCE) {
    const response = await fetch(`${URL_}/v1/sweeps/${SWEEP}/trials`, { method: "POST", headers: { ...HEADERS, "Content-Type": "application/json" }, body: JSON.stringify(Array.from({ length: AT_ONCE }, one)) });
    if (!response.ok) throw new Error(await response.text());
    await wait(Math.max(0, began + ((n + AT_ONCE) * 1000) / LIVE_A_SECOND - performance.now()));
  }
  return (performance.now() - began) / 1000;
}

/** Shares of a core, in per cent, while trials come: of the tab, and of the server. */
async function liveCost(tab) {
  const before = { tab: processOf(tab).seconds, server: processOf(SERVER).seconds };
  const seconds = await addTrials();
  return { tab: (100 * (processOf(tab).seconds - before.tab)) / seconds, server: (100 * (processOf(SERVER).seconds - before.server)) / seconds };
}

/** Memory as the tab rests, and after its main thread has collected garbage, as the browser does when memory is short. */
async function tellMemory(tab, when) {
  const now = memoryOf(tab.pid);
  await tab.collect();
  await wait(1000);
  const collected = memoryOf(tab.pid);
  tell(`memory of the tab (PSS), ${when}`, now.share, "MB", 250);
  tell("the same, after a collection", collected.share, "MB", 250);
  tell("the same, resident", collected.resident, "MB", null);
}

/** Open the sweep in a tab that nobody inspects, wait until it rests, and do what a user does. */
async function measureMemory(tab) {
  await tab.run(() => { window.long = []; new PerformanceObserver((list) => { for (const e of list.getEntries()) window.long.push(Math.round(e.duration)); }).observe({ type: "longtask" }); });
  await wait(REST_MS);
  await tellMemory(tab, "all loaded");
  for (let i = 0; i < ROUNDS; i++) { await tab.run(sortBy, columnOf(i)); await wait(ACTION_MS); }
  for (let i = 0; i < ROUNDS; i++) { await tab.run(filterBy, filterOf(i)); await wait(ACTION_MS); }
  await tab.run(filterBy, "");
  await wait(REST_MS);
  await tellMemory(tab, "after sorts and filters");
}

async function measureLive(tab) {
  const longTask = () => tab.run(() => { const most = Math.max(0, ...window.long); window.long = []; return most; });
  await longTask();
  const idle = processOf(tab.pid).seconds;
  await wait(1000 * LIVE_S);
  const idleShare = ((100 * (processOf(tab.pid).seconds - idle)) / LIVE_S).toFixed(1);
  const one = await liveCost(tab.pid);
  tell(`processor of the tab, ${LIVE_A_SECOND} new trials a second`, one.tab.toFixed(1), "%", 10, idleShare);
  tell("longest task while trials come", await longTask(), "ms", 50);
  await wait(REST_MS);
  await tellMemory(tab, "after live trials");
  const second = await context.newPage();
  await second.goto(`${URL_}/#/sweeps/${SWEEP}`);
  await second.getByTestId("best").waitFor();
  await wait(SETTLE_MS);
  const two = await liveCost(tab.pid);
  tell("processor of the server, a further viewer", Math.max(0, two.server - one.server).toFixed(1), "%", 5, one.server.toFixed(1));
}

async function measurePeer() {
  const began = performance.now();
  await page.goto(`${PEER}/dashboard/studies/1`, { waitUntil: "commit" });
  await page.locator(".js-plotly-plot .points path, .js-plotly-plot .point, .js-plotly-plot canvas").first().waitFor({ state: "attached", timeout: 120_000 });
  tell("optuna-dashboard: its first chart", Math.round(performance.now() - began), "ms", null);
  await wait(SETTLE_MS);
  tell("optuna-dashboard: longest task while loading", await longest(), "ms", null);
  tell("optuna-dashboard: memory of the tab", memoryOf(renderers()[0].pid).share, "MB", null);
}

try {
  if (PEER) await measurePeer();
  else {
    await page.goto(`${URL_}/#token=${TOKEN}`);
    await page.getByRole("heading", { name: "Sweeps", exact: true }).waitFor();
    await measureLoading();
    await measureActions();
    await page.goto("about:blank");
    const tab = await openPlainTab(context.browser(), `${URL_}/#token=${TOKEN}`, `#/sweeps/${SWEEP}`);
    await measureMemory(tab);
    await measureLive(tab);
  }
  if (browser.errors.length > 0 && !PEER) console.error(browser.errors.join("\n"));
} finally {
  await browser.close();
}
