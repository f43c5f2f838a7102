/* Which tasks hold up the page's main thread: the real page and Chromium, over the tests' server (tests/web/fixture.mjs), which
 * invents the trials.
 *
 *     node bench/long_tasks.mjs [TRIALS]     ASSAY_BUILD_ROOT: the build folder (build), with the page and tests/web/packages.stamp
 *
 * For opening a sweep, four sorts, four filters, and 50 new trials a second for 8 s, a line with the processor time of the
 * main thread and the number of tasks above 50 ms, by the processor and by the clock; then each such task, the longest first, with
 * what took most of it. Two objectives. Figures of the processor hold beside other work, those of the clock do not. */
process.env.CHROMIUM ??= "/usr/bin/chromium"; // figures are of the whole browser, which people have
const { DIST, openBrowser, rowsOf, until } = await import("../tests/web/browser.mjs");
const { startFixture, TOKEN } = await import("../tests/web/fixture.mjs");

const TRIALS = Number(process.argv[2] ?? 100_000);
const LONG_US = 50_000;
const TOLD = 7; // parts of a task
const PART_US = 4_000;
const LIVE_TURNS = 80; // of 5 trials, a tenth of a second apart
const CATEGORIES = ["toplevel", "disabled-by-default-devtools.timeline", "devtools.timeline", "v8", "__metadata"];

const isTask = (e) => /ThreadControllerImpl::RunTask$/.test(e.name) && e.tdur !== undefined;
const cost = (tasks) => tasks.reduce((sum, e) => sum + e.tdur, 0);
const ms = (us) => Math.round(us / 1000);

/** The events of the main thread of the page: of those that bear the name, the one that computed most. */
function mainThread(events) {
  const threads = new Map();
  for (const e of events) if (e.name === "thread_name" && e.args.name === "CrRendererMain") threads.set(`${e.pid}.${e.tid}`, []);
  for (const e of events) threads.get(`${e.pid}.${e.tid}`)?.push(e);
  return [...threads.values()].sort((a, b) => cost(b.filter(isTask)) - cost(a.filter(isTask)))[0] ?? [];
}

function partOf({ name, tdur, args }) {
  const call = args?.data?.functionName === undefined ? "" : `[${args.data.functionName || "?"} ${args.data.lineNumber}:${args.data.columnNumber}]`;
  return `${name}${call} ${ms(tdur)}`;
}

function tell(name, events) {
  const main = mainThread(events);
  const tasks = main.filter(isTask);
  const long = tasks.filter((e) => e.tdur > LONG_US).sort((a, b) => b.tdur - a.tdur);
  console.log(`${name}: main thread ${ms(cost(tasks))} ms; tasks above ${ms(LONG_US)} ms: ${long.length} of the processor, ${tasks.filter((e) => e.dur > LONG_US).length} by the clock`);
  for (const task of long) {
    const inside = (e) => e !== task && e.ph === "X" && e.ts >= task.ts && e.ts + (e.dur ?? 0) <= task.ts + task.dur && (e.tdur ?? 0) > PART_US && !/RunTask|RunMicrotasks/.test(e.name);
    console.log(`  ${ms(task.tdur)} ms: ${main.filter(inside).sort((a, b) => b.tdur - a.tdur).slice(0, TOLD).map(partOf).join(", ")}`);
  }
}

const { page, context, close } = await openBrowser();
const fixture = await startFixture(DIST);
const sweep = fixture.invent("made", TRIALS, 5000);
sweep.base.metrics = [{ name: "val_error", goal: "minimize" }, { name: "m1", goal: "minimize" }];

async function traced(name, work) {
  const chromium = context.browser();
  await chromium.startTracing(page, { categories: CATEGORIES });
  await work();
  tell(name, JSON.parse((await chromium.stopTracing()).toString()).traceEvents);
}

const wait = (time) => page.waitForTimeout(time);
const pointsOf = (region) => page.getByRole("region", { name: region, exact: true }).getAttribute("data-points").then(Number);

async function sortBy(column) {
  await page.evaluate((c) => [...document.querySelectorAll(".rows")].at(-1).querySelectorAll("thead th button")[c].click(), column);
  await wait(700);
}

async function filterBy(text) {
  await page.locator(".filter input").fill(text);
  await wait(1200);
}

try {
  await page.goto(`${fixture.url}/#token=${TOKEN}`);
  await page.getByRole("heading", { name: "Sweeps", exact: true }).waitFor();
  await traced("opening", async () => {
    await page.evaluate(() => { location.hash = "#/sweeps/made"; });
    await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === TRIALS);
    await until(page, "the history", () => pointsOf("History"), (n) => n > 0);
    await wait(2500);
  });
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await wait(2500);
  await traced("sorts", async () => { for (let i = 2; i < 6; i++) await sortBy(i); });
  await page.evaluate(() => scrollTo(0, 0));
  await traced("filters", async () => { for (let i = 2; i < 6; i++) await filterBy(`p0 < 0.${i} and p7 != 'lion'`); });
  await filterBy("");
  await traced("live", async () => {
    for (let i = 0; i < LIVE_TURNS; i++) {
      fixture.grow("made", 5);
      await wait(100);
    }
  });
} finally {
  fixture.close();
  await close();
}
