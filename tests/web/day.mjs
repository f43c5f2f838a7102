/* A day's work of a data scientist, with real programs: `assay up` with PostgreSQL, runners, Chromium, two tabs, and nothing
 * but what the page shows. A data set is registered and looked at, a sweep is written with mistakes, watched, filtered,
 * sorted, brushed, compared, downloaded, tagged; a program with logs and files is tuned while a server restarts and a runner
 * dies; trials are told by hand, a sweep is cloned and compared, a model is kept and served.
 *
 *   node tests/web/day.mjs                 the short day, as the suite runs it
 *   ASSAY_DAY=long node tests/web/day.mjs  some 300 trials (./dev nightly, or ninja nightly-day)
 *   ASSAY_DAY_SHOTS=DIR …                  keeps a picture of each step */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD, column, frames, leave, matches, openBrowser, remove, rowsOf, shows, slowNetwork, SOURCE, step, until, untilInSight } from "./browser.mjs";
import { startInstallation } from "./installation.mjs";
import { openDownloads } from "./opened.mjs";

const LONG = process.env.ASSAY_DAY === "long";
const SHOTS = process.env.ASSAY_DAY_SHOTS;
const [DIGITS, OUTSIDE, CLONED] = LONG ? [160, 70, 60] : [40, 16, 12]; // trials
const LR = { min: 0.0001, max: 0.3 };
const AXIS = { x: 70, top: 34, bottom: 340 }; // the first one of parallel coordinates, in px of the drawing
const HOSTILE = `# Why\n[x](javascript:alert(1)) <img src=x onerror="window.pwned=1"> **b**\n`;

const folder = mkdtempSync("/var/tmp/assay-day-");
chmodSync(folder, 0o755);
copyFileSync(join(SOURCE, "tests/web/day_trial.py"), join(folder, "trial.py"));
copyFileSync(join(SOURCE, "examples/digits.csv"), join(folder, "digits.csv"));

const DOCUMENT = `name: digits-day
metric: {name: val_error, goal: minimize}
parameters:
  lr: {type: float, min: 0.0001, max: 0.3, scale: log}
  width: {type: int, min: 16, max: 64, scale: log}
  dropout: {type: float, min: 0.0, max: 0.5}
  optimizer: {type: categorical, values: [sgd, adamw]}
  momentum: {type: float, min: 0, max: 0.98, when: {optimizer: sgd}}
search: {method: gp}
limits: {max_trials: ${DIGITS}}
early_stopping: {method: asha, min_steps: 2, eta: 3}
trial:
  train:
    dataset: digits
    model: {kind: mlp, layers: ["\${width}"], dropout: "\${dropout}"}
    optimizer: {kind: "\${optimizer}", lr: "\${lr}", momentum: "\${momentum}"}
    epochs: 18
    batch_size: 64
`;
const MISTAKES = [
  [["name: digits-day", "name: Digits Day"], /line 1 .*found 'Digits Day', expected up to 63/], [["goal: minimize", "goal: minimise"], /line 2 .*expected one of minimize, maximize/],
  [["max: 0.5}", "max: -1}"], /line 6 .*min \(0\) is above max/], [["method: gp", "method: gpp"], /line 9 .*found 'gpp', expected one of grid/], [["\"${width}\"", "\"${widht}\""], /line 15 .*there is no parameter 'widht'/],
];
const OUTSIDE_DOCUMENT = `name: outside
metric: {name: loss, goal: minimize}
parameters:
  lr: {type: float, min: 0.001, max: 1.0, scale: log}
  decay: {type: float, min: 0.0, max: 1.0}
  kind: {type: categorical, values: [plain, half]}
search: {method: random, seed: 5}
limits: {max_trials: ${OUTSIDE - 4}, max_failed_trials: ${OUTSIDE}, max_restarts: 5}
trial:
  command: [python3, ${join(folder, "trial.py")}, "${LONG ? 0.1 : 0.2}"]
`;

// Where silence of a runner is the subject, it is short.
const assay = await startInstallation(["--lease", "6s", "--heartbeat", "1s"]).catch((error) => { remove(folder); throw error; });
const browser = await openBrowser().catch(async (error) => { await assay.stop(false); remove(folder); throw error; });
const { page, context, errors } = browser;
await slowNetwork(context);
await context.grantPermissions(["clipboard-read", "clipboard-write"]);
// Panels that move although nobody did anything, by their names.
await context.addInitScript(() => {
  window.moved = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      for (const { node, previousRect: a, currentRect: b } of entry.sources) if (node?.nodeName === "SECTION" && a.height > 0 && b.height > 0) window.moved.push(`${node.getAttribute("aria-label")} by ${Math.round(b.top - a.top)}${entry.hadRecentInput ? " after input" : ""}`);
    }
  }).observe({ type: "layout-shift" });
});

const region = (name, of = page) => of.getByRole("region", { name, exact: true });
const heading = (name, of = page) => of.getByRole("heading", { name, exact: true });
const text = (locator) => () => locator.first().innerText();
const attribute = (locator, name) => () => locator.first().getAttribute(name);
const visit = (hash, of = page) => leave(of, () => of.goto(`${assay.url}/${hash}`));
/** The same in a new view, where another address of the view that is there would be meant. */
const visitAnew = async (to) => {
  await visit("#/none");
  await visit(to);
};
const hash = () => page.evaluate(() => decodeURIComponent(location.hash.replaceAll("+", " ")));
const area = page.getByRole("textbox", { name: "Sweep document" });
const dialog = page.locator("dialog[open]");
const trialsOf = async (sweep) => (await assay.api("GET", `/v1/sweeps/${sweep}/trials?page_size=500`)).items;
const sweepOf = (sweep) => assay.api("GET", `/v1/sweeps/${sweep}`);
const close = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(1e-300, Math.abs(b));
const env = { ...process.env, ASSAY_SERVER: assay.url, ASSAY_TOKEN: assay.token };

/** A command that the page shows, with words of the user's own instead of its examples. */
function inShell(command, words = {}) {
  const [program, ...args] = command.split(/\s+/).map((w) => words[w] ?? w);
  assert.equal(program, "assay", command);
  const run = spawnSync(join(BUILD, "cli/assay"), args, { encoding: "utf8", env, cwd: folder });
  assert.equal(run.status, 0, `${command}: ${run.stderr}`);
  return run.stdout;
}

let steps = 0;
/** A step, with a picture of where it ended. */
async function part(name, work) {
  try {
    await step(name, work);
  } catch (error) {
    console.error(`the console said: ${errors.join("\n")}; panels moved: ${(await page.evaluate(() => window.moved)).join(", ")}`);
    throw error;
  } finally {
    if (SHOTS) {
      mkdirSync(SHOTS, { recursive: true });
      await page.screenshot({ path: join(SHOTS, `${String(++steps).padStart(2, "0")}-${name.replace(/[^\w]+/g, "-").slice(0, 40)}.png`) });
    }
  }
}

/** The faults of the editor's document, once it has been checked. */
async function faultsOf() {
  await until(page, "the check", attribute(region("Faults"), "data-faults"), (n) => n !== "");
  return (await region("Faults").locator("li").allInnerTexts()).map((t) => t.replace(/\s+/g, " "));
}

async function begin(document, faults = "0") {
  await area.fill(document);
  await shows(page, "faults", attribute(region("Faults"), "data-faults"), faults);
  await leave(page, () => page.getByRole("button", { name: "Begin the sweep" }).click());
}

const ended = (name, of = page) => of.locator(`.head .state-${name}`).waitFor();

/** The children of `assay up` that run this program. */
function pidsOf(program) {
  const children = readFileSync(`/proc/${assay.pid}/task/${assay.pid}/children`, "utf8").trim().split(" ").map(Number);
  return children.filter((pid) => readFileSync(`/proc/${pid}/comm`, "utf8").trim() === program);
}

/** Every row of a CSV has the numbers that the API has of that trial. */
function sameAsApi(rows, trials, metric, of = () => true) {
  const wanted = trials.filter(of);
  assert.deepEqual(rows.map((r) => Number(r.number)), wanted.map((t) => t.number));
  rows.forEach((row, i) => {
    for (const [name, value] of Object.entries(row)) {
      const known = name === metric ? wanted[i].value : name.startsWith("param:") ? wanted[i].params[name.slice(6)] : undefined;
      if (known === undefined || known === null) continue;
      assert.ok(typeof known === "number" ? close(Number(value), known) : value === String(known), `${name} of trial ${row.number}: ${value}, the API has ${known}`);
    }
  });
}

let failed = true;
const extra = [];

try {
  await part("the first look: no data, and a command that works as it stands there", async () => {
    await visit(`#token=${assay.token}`);
    await page.getByText("No sweeps yet").waitFor();
    await leave(page, () => page.getByRole("link", { name: "Data" }).click());
    const command = await page.locator(".empty pre").innerText();
    inShell(command, { rows: "digits", "rows.csv": "digits.csv", column: "class" });
    await page.getByRole("link", { name: "digits" }).waitFor(); // without a reload
  });

  await part("the data set: its columns, and a sweep that begins from it", async () => {
    await leave(page, () => page.getByRole("link", { name: "digits" }).click());
    await until(page, "the distributions", () => region("Columns").getByText("Download").count(), (n) => n === 1);
    const { rows } = await openDownloads(page, region("Columns"), "columns");
    assert.equal(rows.filter((r) => r.column === "class").reduce((sum, r) => sum + Number(r.rows), 0), 1797);
    await leave(page, () => page.getByRole("link", { name: "New sweep" }).click());
    await shows(page, "faults of the example", attribute(region("Faults"), "data-faults"), "0");
    assert.match(await area.inputValue(), /dataset: digits\n/);
  });

  await part("mistakes: each is said with its line, and nothing begins", async () => {
    await area.fill(MISTAKES.reduce((t, [[right, wrong]]) => t.replace(right, wrong), DOCUMENT));
    const faults = await faultsOf();
    assert.equal(faults.length, MISTAKES.length, faults.join("\n"));
    MISTAKES.forEach(([, said], i) => assert.match(faults[i], said));
    assert.ok(await page.getByRole("button", { name: "Begin the sweep" }).isDisabled());
    await area.fill(DOCUMENT.replace("dataset: digits", "dataset: digit"));
    assert.match((await faultsOf()).join(), /there is no data set 'digit'/);
  });

  await part("typed by keys: lines keep their indentation, and Enter is a new line", async () => {
    await area.fill("");
    await area.focus();
    const keys = (typed) => page.keyboard.type(typed);
    await keys("name: typed\n\nmetric: {name: loss, goal: minimize}\nparameters:\nx: {type: float, min: 0, max: 1}\nkind:\ntype: categorical\nvalues: [a, b]\n");
    for (let level = 0; level < 2; level++) await page.keyboard.press("Backspace");
    await keys("limits: {max_trials: 4}\nearly");
    await page.getByRole("option", { name: /early_stopping/ }).waitFor();
    await page.keyboard.press("Enter");
    const typed = "name: typed\n\nmetric: {name: loss, goal: minimize}\nparameters:\n  x: {type: float, min: 0, max: 1}\n  kind:\n    type: categorical\n    values: [a, b]\nlimits: {max_trials: 4}\n";
    await shows(page, "the text", () => area.inputValue(), `${typed}early_stopping: `);
    await page.keyboard.press("Control+z");
    await shows(page, "the text without the choice", () => area.inputValue(), `${typed}early`);
    await page.keyboard.press("Control+Space");
    const [list, box] = [await page.getByRole("listbox").boundingBox(), await area.boundingBox()];
    assert.ok(list.y > box.y && list.y + list.height <= box.y + box.height + 1, "the choices are at the caret, within the editor");
    await page.keyboard.press("Escape");
  });

  const previewed = [];
  await part("the preview says what comes first, and the sweep begins with it", async () => {
    await area.fill(DOCUMENT);
    await shows(page, "faults", attribute(region("Faults"), "data-faults"), "0");
    await matches(page, "who runs it", text(region("Preview")), /Run by\s+runners/);
    previewed.push(...await region("First suggestions").locator("tbody td:first-child").evaluateAll((all) => all.map((td) => Number(td.title))));
    assert.equal(previewed.length, 8);
    await leave(page, () => page.getByRole("button", { name: "Begin the sweep" }).click());
    await heading("digits-day").waitFor();
    await until(page, "the first trials", () => trialsOf("digits-day"), (all) => all.length >= 4);
    (await trialsOf("digits-day")).slice(0, 4).forEach((t, i) => assert.ok(close(t.params.lr, previewed[i]), `trial ${i} has lr ${t.params.lr}, the preview said ${previewed[i]}`));
  });

  const second = await context.newPage();
  await part("watched in two tabs: nothing false is said, no panel jumps, both end alike", async () => {
    await visit("#/sweeps/digits-day?explore=slices", second);
    await heading("digits-day", second).waitFor();
    await page.bringToFront();
    await page.getByTestId("best").waitFor();
    await page.evaluate(() => { window.moved = []; });
    const isOver = () => page.locator(".head .state-completed").count();
    while (await isOver() === 0) {
      const [history, best] = await page.evaluate(() => [document.querySelector("[aria-label=History]")?.innerText, document.querySelector("[data-testid=best]")?.innerText]);
      assert.ok(!(best !== undefined && /No trial has a value|without a trial/.test(history ?? "")), "a best trial beside a history without one");
      await page.waitForTimeout(200);
    }
    const moved = await page.evaluate(() => window.moved);
    assert.deepEqual(moved.filter((m) => Math.abs(Number(/by (-?\d+)$/.exec(m)?.[1] ?? 0)) > 60), [], "panels jumped while trials arrived");
    const now = await sweepOf("digits-day");
    await shows(page, "the end", text(page.getByTestId("ended")), String(DIGITS));
    await second.bringToFront();
    await ended("completed", second);
    await until(second, "the best in the second tab", attribute(second.getByTestId("best"), "title"), (t) => Number(t) === now.best.value);
    await page.bringToFront();
    await second.close();
  });

  await part("filters: right ones, and wrong ones with a word of help", async () => {
    const all = await trialsOf("digits-day");
    const filter = page.getByRole("textbox", { name: "Filter" });
    const passing = async (typed, wanted) => {
      await filter.fill(typed);
      await shows(page, `rows of ${typed}`, () => rowsOf(page, "Trials"), wanted);
    };
    await passing("lr < 0.01 and optimizer == 'sgd'", all.filter((t) => t.params.lr < 0.01 && t.params.optimizer === "sgd").length);
    await passing("state == 'pruned'", all.filter((t) => t.state === "pruned").length);
    await region("History").getByText("None of these trials has completed.").waitFor(); // although they have values
    await passing("number in [1, 2, 3]", 3);
    for (const [wrong, said] of [["optimizer == sgd", /a text stands between quotes: 'sgd'/], ["lr < 1 && width > 3", /unexpected '&', write 'and'/], ["trial == 3", /did you mean 'number'/], ["lr <", /character 5: expected a value/], ["lr = 3", /write '=='/], ["Lr < 3", /did you mean 'lr'/]]) {
      await filter.fill(wrong);
      await matches(page, "what is wrong", text(page.locator("#filter-error")), said);
      await matches(page, "what is shown", text(page.locator("#filter-error")), /all trials are shown/);
      await shows(page, "all", () => rowsOf(page, "Trials"), DIGITS);
    }
    await page.getByRole("button", { name: "Clear" }).first().click();
    await shows(page, "all", () => rowsOf(page, "Trials"), DIGITS);
  });

  await part("each column orders the table, and each is chosen by a name of its own", async () => {
    const table = region("Trials");
    const all = await trialsOf("digits-day");
    const key = { Trial: (t) => t.number, val_error: (t) => t.value ?? NaN, lr: (t) => t.params.lr, width: (t) => t.params.width, dropout: (t) => t.params.dropout, optimizer: (t) => t.params.optimizer };
    const names = (await table.locator("thead th").allInnerTexts()).map((t) => t.replace(/[▲▼]/g, "").trim());
    for (const name of names) {
      const th = table.locator("thead th").filter({ hasText: name }).first();
      const order = attribute(th, "aria-sort");
      await th.locator("button").click();
      await until(page, `the order of ${name}`, order, (o) => o !== "none");
      if (await order() === "ascending") await th.locator("button").click();
      await shows(page, `the order of ${name}`, order, "descending");
      if (!key[name]) continue;
      const value = (number) => key[name](all.find((t) => t.number === Number(number)));
      await until(page, `rows by ${name}`, async () => (await column(page, "Trials", "Trial")).map(value).filter((v) => v === v), (values) => values.length > 5 && values.every((v, i) => i === 0 || values[i - 1] >= v));
    }
    const chooser = page.locator("details.chooser");
    await chooser.locator("summary").click();
    const offered = await chooser.locator("label").allInnerTexts();
    assert.equal(new Set(offered).size, offered.length, `two columns of one name: ${offered.join(", ")}`);
    await chooser.getByLabel("lr (metric)").check();
    await until(page, "the column", text(table), (t) => t.includes("lr (metric)"));
    await page.keyboard.press("Escape");
    await shows(page, "an open list of columns", () => page.locator("details.chooser[open]").count(), 0);
  });

  await part("a range is dragged; it is in the address, in the counts, after a reload and after the way back", async () => {
    await visitAnew("#/sweeps/digits-day");
    const panel = region("Parameters of all trials");
    const completed = (await trialsOf("digits-day")).filter((t) => t.state === "completed");
    await untilInSight(page, "the lines", panel, attribute(panel, "data-drawn"), (n) => Number(n) === completed.length);
    let box = null; // where it stays: panels above it may still be loading
    for (let last = "", same = 0; same < 3; last = JSON.stringify(box)) {
      await page.waitForTimeout(200);
      box = await panel.locator("canvas").boundingBox();
      same = JSON.stringify(box) === last ? same + 1 : 0;
    }
    const rates = completed.map((t) => t.params.lr).sort((a_, b_) => a_ - b_);
    const half = Math.sqrt(rates[Math.floor(rates.length / 2) - 1] * rates[Math.floor(rates.length / 2)]);
    const y = box.y + AXIS.bottom - (Math.log(half / LR.min) / Math.log(LR.max / LR.min)) * (AXIS.bottom - AXIS.top);
    await page.mouse.move(box.x + AXIS.x, box.y + AXIS.top + 1);
    await page.mouse.down();
    await page.mouse.move(box.x + AXIS.x + 1, (box.y + y) / 2, { steps: 3 });
    await page.mouse.move(box.x + AXIS.x + 1, y);
    await page.mouse.up();
    const brushed = async () => JSON.parse(/brush=([^&]*)/.exec(await hash())?.[1] ?? "{}")["param:lr"];
    const [low] = await until(page, "the range in the address", brushed, (r) => Array.isArray(r));
    const inside = completed.filter((t) => t.params.lr >= low).length;
    assert.ok(inside > 0 && inside < completed.length, `${inside} of ${completed.length} are in the range`);
    const marked = () => text(page.getByTestId("marked"))().then(Number, () => -1);
    await shows(page, "highlighted", marked, inside);
    await leave(page, () => page.reload());
    await untilInSight(page, "highlighted after a reload", panel, marked, (n) => n === inside);
    const address = await hash();
    await leave(page, () => page.getByRole("link", { name: "Runners" }).click());
    await leave(page, () => page.goBack());
    assert.equal(await hash(), address);
    await untilInSight(page, "highlighted after the way back", panel, marked, (n) => n === inside);
    await page.getByRole("button", { name: "Select none" }).click();
    await shows(page, "the address", brushed, undefined);
  });

  await part("every view is saved, and each file is opened", async () => {
    const all = await trialsOf("digits-day");
    const isCompleted = (t) => t.state === "completed";
    const seen = async (name, attr, wanted) => {
      await untilInSight(page, name, region(name), attribute(region(name), attr), wanted);
      await frames(page, 4);
      return openDownloads(page, region(name), name);
    };
    await visitAnew("#/sweeps/digits-day");
    const history = await seen("History", "data-points", (n) => Number(n) === all.filter(isCompleted).length);
    assert.ok(history.elements.circle >= all.filter(isCompleted).length, "the SVG has the points");
    sameAsApi(history.rows, all, "val_error");
    assert.deepEqual(history.rows.map((r) => [r.state, r.highlighted]), all.map((t) => [t.state, "0"]));
    const rungs = await seen("Early stopping", "data-rungs", (n) => Number(n) > 0);
    assert.deepEqual(rungs.rows.map((r) => Number(r.reached)), (await sweepOf("digits-day")).early_stopping.rungs.map((r) => r.reached));
    const curves = await seen("Curves of all trials", "data-curves", (n) => Number(n) === DIGITS);
    assert.ok(curves.elements.path >= DIGITS);
    const points = await assay.api("GET", `/v1/sweeps/digits-day/trials/${all.at(-1).number}/measurements`);
    assert.deepEqual(curves.rows.filter((r) => Number(r.number) === all.at(-1).number).map((r) => Number(r.val_error)), points.series.val_error.values);
    const parallel = await seen("Parameters of all trials", "data-drawn", (n) => Number(n) === all.filter(isCompleted).length);
    sameAsApi(parallel.rows, all, "val_error", isCompleted);
    const timeline = await seen("Timeline", "data-runs", (n) => Number(n) > 0);
    assert.ok(timeline.elements.rect >= timeline.rows.length && new Set(timeline.rows.map((r) => r.number)).size === DIGITS);
    if (await region("Importance").locator("tbody tr").count() > 0) {
      const known = await assay.api("GET", "/v1/sweeps/digits-day/importance");
      const importance = await openDownloads(page, region("Importance"), "importance");
      assert.deepEqual(importance.rows.map((r) => [r.parameter, Number(r.total)]), known.parameters.map((p) => [p.name, p.total]));
    }
    for (const view of ["slices", "contour"]) {
      await visitAnew(`#/sweeps/digits-day?explore=${view}`);
      await untilInSight(page, view, region("Parameters of all trials"), () => region("Parameters of all trials").locator("canvas").count(), (n) => n > 0);
      await frames(page, 4);
      const figures = view === "contour" ? [region("Parameters of all trials")] : await region("Parameters of all trials").locator("figure").all();
      for (const figure of figures) sameAsApi((await openDownloads(page, figure, view)).rows, all, "val_error", isCompleted);
    }
  });

  await part("selected trials: tags, an ended sweep says what to do, remarks without a way to HTML", async () => {
    const best = (await sweepOf("digits-day")).best.number;
    await visitAnew(`#/sweeps/digits-day?sort=value&picked=${best}`);
    const selected = page.getByRole("group", { name: "Selected trials" });
    await selected.getByRole("button", { name: "Tag…" }).click();
    await dialog.getByLabel("Add").fill("good, <b>bold</b>");
    await dialog.getByRole("button", { name: "Change tags" }).click();
    await until(page, "the tags", () => column(page, "Trials", "Tags"), (all) => all[0] === "<b>bold</b>, good");
    await selected.getByRole("button", { name: "Enqueue again…" }).click();
    await matches(page, "why not", text(dialog), /has ended and takes no more trials\. Raise its number of trials first/);
    assert.ok(await dialog.getByRole("button", { name: "Enqueue" }).isDisabled());
    await page.keyboard.press("Escape");
    await region("Remarks").getByRole("button", { name: "Edit tags and remarks" }).click();
    await page.getByLabel("Remarks Markdown").fill(HOSTILE);
    await region("Remarks").getByRole("button", { name: "Save" }).click();
    await region("Remarks").getByRole("heading", { name: "Why" }).waitFor();
    assert.equal(await region("Remarks").locator("img, a").count(), 0);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  });

  await part("a program from outside: begun paused, a limit changed, resumed, a trial cancelled and tried again", async () => {
    await leave(page, () => page.getByRole("link", { name: "Sweeps" }).first().click());
    await leave(page, () => page.getByRole("link", { name: "New sweep" }).click());
    await page.getByLabel("Paused").check();
    await begin(OUTSIDE_DOCUMENT);
    await ended("paused");
    await page.getByRole("button", { name: "Limits…" }).click();
    browser.expect(/status of 400 .*\/v1\/sweeps\/outside$/);
    await dialog.getByLabel("Trials", { exact: true }).fill("none");
    await dialog.getByRole("button", { name: "Change limits" }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByLabel("Trials", { exact: true }).fill(String(OUTSIDE));
    await dialog.getByRole("button", { name: "Change limits" }).click();
    await shows(page, "dialogs", () => dialog.count(), 0);
    await page.getByRole("button", { name: "Resume" }).click();
    await ended("running");
    const running = await until(page, "a trial that runs", async () => (await trialsOf("outside")).find((t) => t.state === "running"), (t) => t !== undefined);
    await visit(`#/sweeps/outside/trials/${running.number}`);
    if (await page.getByRole("button", { name: "Cancel…" }).count() > 0) { // it may have ended meanwhile
      await page.getByRole("button", { name: "Cancel…" }).click();
      await page.getByRole("button", { name: "Cancel the trial" }).click();
      await until(page, "the trial's end", text(page.locator(".head .state")), (s) => ["cancelled", "completed", "failed"].includes(s));
      if (await page.locator(".head .state-cancelled").count() > 0) await page.getByRole("button", { name: "Retry" }).click();
    }
  });

  await part("a runner dies and is said lost; it is forgotten; another is drained", async () => {
    const runner = spawn("setpriv", ["--pdeathsig", "KILL", join(BUILD, "trial-runner/agent/assay-runner"), "--server", assay.url, "--name", "mortal", "--work", join(folder, "mortal"), "--token-file", join(assay.data, "runner.token")], { stdio: "ignore" });
    extra.push(runner);
    await leave(page, () => page.getByRole("link", { name: "Runners" }).click());
    const stateOf = (name) => async () => { const [names, states] = [await column(page, "Runners", "Runner"), await column(page, "Runners", "State")]; return states[names.indexOf(name)]; };
    await shows(page, "the new runner", stateOf("mortal"), "live");
    runner.kill("SIGKILL");
    await shows(page, "the dead runner", stateOf("mortal"), "lost");
    assert.equal(await page.getByRole("button", { name: "Drain mortal" }).count(), 0);
    await page.getByRole("button", { name: "Forget mortal" }).click();
    await page.getByRole("button", { name: "Forget the runner" }).click();
    await shows(page, "the forgotten runner", stateOf("mortal"), undefined);
    const epoch = async () => Number((await column(page, "Runners", "Epoch"))[(await column(page, "Runners", "Runner")).indexOf("local-2")]);
    const before = await epoch();
    await page.getByRole("button", { name: "Drain local-2" }).click();
    await page.getByRole("button", { name: "Drain the runner" }).click();
    await until(page, "the runner that assay up started again", epoch, (n) => n > before);
  });

  await part("the server is killed: the page says so wherever one looks, and catches up", async () => {
    await visit("#/sweeps/outside");
    await heading("outside").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    browser.expect(/ERR_|Failed to load resource|Failed to fetch/);
    process.kill(assay.pid, "SIGSTOP"); // it starts the server again only later
    try {
      for (const pid of pidsOf("assayd")) process.kill(pid, "SIGKILL");
      await page.getByText("Connection lost, trying again…", { exact: true }).waitFor();
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      const said = await page.locator(".lost").boundingBox();
      assert.ok(said !== null && said.y >= 0 && said.y < 900, "what is lost is said in sight");
      await page.getByRole("button", { name: "Clone" }).or(page.getByRole("link", { name: "Clone" })).first().waitFor();
    } finally {
      process.kill(assay.pid, "SIGCONT");
    }
    await page.getByText("Live", { exact: true }).waitFor();
    assert.equal(await page.locator(".lost").count(), 0);
    await ended("completed");
    const { counts } = await sweepOf("outside");
    await shows(page, "all that ended", text(page.getByTestId("ended")), String(counts.completed + counts.failed + counts.cancelled + counts.pruned));
    assert.equal(counts.total, OUTSIDE);
    if (counts.failed > 0) await page.getByRole("button", { name: "Retry failed…" }).waitFor();
  });

  await part("trials side by side: what differs, curves, logs, and files that are looked at", async () => {
    const all = await trialsOf("outside");
    const some = [...all.filter((t) => t.state === "completed").slice(0, 2), ...all.filter((t) => t.state === "failed").slice(0, 1)].map((t) => t.number);
    await visitAnew(`#/sweeps/outside?picked=${some.join(",")}`);
    await leave(page, () => page.getByRole("link", { name: new RegExp(`^Compare ${some.length}`) }).click());
    await shows(page, "curves", attribute(region("Curves"), "data-curves"), String(some.length));
    await until(page, "logs", text(region("Outputs")), (t) => t.split("begins with").length === some.length + 1);
    const { rows } = await openDownloads(page, region("Curves"), "compared curves");
    assert.deepEqual([...new Set(rows.map((r) => Number(r.number)))].sort((a, b) => a - b), [...some].sort((a, b) => a - b));
    await visit(`#/sweeps/outside/trials/${some[0]}`);
    for (const [name, wanted] of [["plot.png", /32 × 32 pixels/], ["table.csv", /5 rows/], ["summary.json", /"w":/], ["note.txt", /<script>window\.pwned/]]) {
      await page.getByRole("button", { name: `View ${name}` }).click();
      await matches(page, name, text(dialog), wanted);
      await page.keyboard.press("Escape");
      await shows(page, "dialogs", () => dialog.count(), 0);
    }
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  });

  await part("by hand: a value that is none is said, a pause says why nothing is handed out", async () => {
    await visit("#/new");
    await begin("name: by-hand\nmetric: {name: loss, goal: minimize}\nparameters:\n  x: {type: float, min: 0, max: 1}\nlimits: {max_trials: 2}\n");
    await page.getByRole("button", { name: "Ask for a trial" }).click();
    const form = page.getByRole("form", { name: "Trial #0" });
    await form.getByLabel("loss").fill("0,5");
    await form.getByText("This is no number").waitFor();
    await form.getByLabel("loss").fill("0.5");
    await form.getByRole("button", { name: "Tell" }).click();
    await page.getByText("Trial #0 is told.").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("The sweep is paused: no trial is handed out").waitFor();
    assert.ok(await page.getByRole("button", { name: "Ask for a trial" }).isDisabled());
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel the sweep" }).click();
    await ended("cancelled");
    assert.doesNotMatch(await page.locator("main").innerText(), /without a trial|No trials/, "one was told");
  });

  await part("a clone with another seed, and the two side by side", async () => {
    await visit("#/sweeps/digits-day");
    await leave(page, () => page.getByRole("link", { name: "Clone" }).click());
    await until(page, "the document", () => area.inputValue(), (t) => t.includes("digits-day"));
    await begin((await area.inputValue()).replace(/seed: \d+/, "seed: 12").replace(`max_trials: ${DIGITS}`, `max_trials: ${CLONED}`));
    await heading("digits-day-2").waitFor();
    await ended("completed");
    await visit("#/compare?sweeps=digits-day,digits-day-2");
    await until(page, "groups", attribute(region("Best so far"), "data-groups"), (n) => Number(n) > 0);
    const { rows } = await openDownloads(page, region("Best so far"), "best so far");
    assert.ok(rows.every((r) => Number.isInteger(Number(r["trials that ended"]))), "no part of a trial");
    const [first, second_] = await Promise.all(["digits-day", "digits-day-2"].map(sweepOf));
    assert.deepEqual(["digits-day", "digits-day-2"].map((name) => Number(rows.filter((r) => r.group === name).at(-1).median)), [first.best.value, second_.best.value]);
  });

  await part("a model is kept, and the commands of its page run", async () => {
    await visit("#/sweeps/digits-day");
    await page.getByRole("button", { name: "Add to models…" }).click();
    await dialog.getByRole("textbox").fill("digits");
    await dialog.getByRole("button", { name: "Add it" }).click();
    await leave(page, () => dialog.getByRole("link").first().click());
    await heading("digits").waitFor();
    const commands = await region("Use it").locator("code").allInnerTexts();
    assert.equal(commands.length, 3);
    const predictions = inShell(commands.find((c) => c.includes("predict")), { FILE: "digits.csv" }).trim().split("\n");
    assert.equal(predictions.length, 1798);
    inShell(commands.find((c) => c.includes("onnx")));
    assert.ok(existsSync(join(folder, "digits-1.onnx")));
    const serve = commands.find((c) => c.includes("serve")).split(" ").slice(1);
    const server = spawn("setpriv", ["--pdeathsig", "TERM", join(BUILD, "cli/assay"), ...serve, "--listen", "127.0.0.1:0"], { env, cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    extra.push(server);
    const said = { text: "" };
    for (const out of [server.stdout, server.stderr]) out.on("data", (d) => { said.text += d; });
    const url = await until(page, "the address of assay serve", async () => /http:\/\/127\.0\.0\.1:\d+/.exec(said.text)?.[0], (u) => u !== undefined);
    const ready = await until(page, "the model", async () => fetch(`${url}/v2/models/digits/ready`).then((r) => r.status, () => 0), (s) => s === 200);
    assert.equal(ready, 200);
    server.kill("SIGTERM");
  });

  await part("the main path with the keyboard alone", async () => {
    await visit("#/sweeps");
    await shows(page, "rows", () => rowsOf(page, "Sweeps"), 4);
    const tabTo = async (name, back = false) => {
      for (let i = 0; i < 80; i++) {
        await page.keyboard.press(back ? "Shift+Tab" : "Tab");
        if (await page.evaluate((wanted) => { const e = document.activeElement; return (e?.getAttribute("aria-label") ?? e?.textContent ?? "").trim() === wanted; }, name)) return;
      }
      assert.fail(`no Tab leads to ${name}`);
    };
    await tabTo("New sweep");
    await leave(page, () => page.keyboard.press("Enter"));
    await tabTo("Sweep document");
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(OUTSIDE_DOCUMENT.replace("name: outside", "name: keys").replace(/max_trials: \d+/, "max_trials: 2"));
    await shows(page, "faults", attribute(region("Faults"), "data-faults"), "0");
    await tabTo("Begin the sweep", true);
    await leave(page, () => page.keyboard.press("Enter"));
    await ended("completed");
    await shows(page, "rows", () => rowsOf(page, "Trials"), 2);
    for (const n of [0, 1]) {
      await tabTo(`Select trial ${n}`);
      await page.keyboard.press("Space");
    }
    await tabTo("Compare 2", true);
    await leave(page, () => page.keyboard.press("Enter"));
    await shows(page, "curves", attribute(region("Curves"), "data-curves"), "2");
  });

  await part("three sizes and both themes: nothing is wider than the window", async () => {
    for (const view of ["#/sweeps", "#/sweeps/digits-day", "#/compare/trials?of=outside:0-3", "#/new", "#/data/digits", "#/models/digits", "#/runners"]) {
      await visitAnew(view);
      for (const [width, colorScheme] of [[390, "dark"], [1024, "light"], [1440, "dark"]]) {
        await page.setViewportSize({ width, height: 844 });
        await page.emulateMedia({ colorScheme });
        await frames(page, 3);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${view} is ${wide} px wide in a window of ${width}`);
      }
    }
  });

  assert.deepEqual(errors, [], "the console stayed clean, and nothing broke the content security policy");
  failed = false;
} finally {
  for (const child of extra) child.kill("SIGKILL");
  await browser.close().finally(() => assay.stop(failed));
  remove(folder);
}
