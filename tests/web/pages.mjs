/* The built page in Chromium with the fixture: every view, its states, and cases that a small,
 * regular sweep does not have. tests/web/late.mjs tests late answers, tests/web/live.mjs tests with
 * real programs. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { accessible, addressMatches, column, DIALOG, DIST, frames, leave, matches, openBrowser, orderBy, panelNamed, rowsOf, shows, step, until, untilInSight } from "./browser.mjs";
import { startFixture, TOKEN } from "./fixture.mjs";
import { checker } from "./schema.mjs";
import { viewsOf } from "./views.mjs";

const browser = await openBrowser();
const { page, errors } = browser;
const fixture = await startFixture(DIST);
const { visit, visitAnew, region, heading, hash, text, attribute, columnOf, titleOf, chartPoints, pointsIn, allPoints, loaded, openList, openSweep, openTrial } = viewsOf(page, fixture);
const numbersOf = (cells) => cells.map((c) => (c === "–" ? null : c === "∞" ? Infinity : Number(c)));

/** Open a model, whose name alone means this version. */
async function openModel(name, version) {
  await visit(`#/models/${name}`);
  await heading(`Version ${version}`).waitFor();
}

/** The text of a panel that is loaded when it becomes visible. */
const inSight = (name, what, look, wanted) => untilInSight(page, what, region(name), look, wanted);
const importanceRows = () => region("Importance").locator("tbody tr").evaluateAll((rows) => rows.map((r) => [...r.children].map((c) => c.innerText.trim())));

/** Whether the numbers are in order, with missing values last. */
function assertOrdered(cells, descending) {
  const values = numbersOf(cells);
  const known = values.filter((v) => v !== null);
  assert.ok(known.length > 5, `few values: ${cells}`);
  assert.ok(values.slice(known.length).every((v) => v === null), `trials without a value come last: ${cells}`);
  assert.deepEqual(known, [...known].sort((a, b) => (descending ? b - a : a - b)));
}

try {
  await step("without a token, the login form; a wrong token is refused in words", async () => {
    browser.expect(/status of 401/);
    await visit("#/sweeps/digits-mlp");
    await page.getByLabel("Token", { exact: true }).fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await matches(page, "the refusal", text(page.getByRole("alert")), /not known/);
  });

  await step("the right token opens the view that was asked for", async () => {
    await page.getByLabel("Token", { exact: true }).fill(TOKEN);
    await leave(page, () => page.getByRole("button", { name: "Sign in" }).click());
    await heading("digits-mlp").waitFor();
    await leave(page, () => page.getByRole("button", { name: "Sign out" }).click());
    await heading("Sign in").waitFor();
    assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length), 0);
  });

  await step("a token in the address signs in and leaves the address", async () => {
    await visit(`#token=${TOKEN}&to=/sweeps/digits-mlp`);
    await heading("digits-mlp").waitFor();
    assert.equal(await hash(), "#/sweeps/digits-mlp");
    await visit(`#token=${TOKEN}`);
    await heading("Sweeps").waitFor();
    assert.equal(await hash(), "#/sweeps");
  });

  await step("the list: every sweep, filtered and ordered by its address", async () => {
    const names = columnOf("Sweeps", "Sweep");
    await shows(page, "rows", names, ["empty", "live", "nasty", "digits-mlp", "tuned", "two", "three", "asked", "stopped", "big", "ranks", "wide"]);
    await page.getByRole("button", { name: "completed 7" }).click();
    await orderBy(page, "Sweeps", "Best", "ascending");
    const ordered = [...["digits-mlp", "tuned", "two", "three", "big", "ranks"].sort((a, b) => fixture.sweeps.get(a).view.best.value - fixture.sweeps.get(b).view.best.value), "wide"];
    await shows(page, "the completed ones in order", names, ordered);
    await leave(page, () => page.reload());
    await shows(page, "rows after a reload", names, ordered);
    await page.getByLabel("Find sweeps by name").fill("digi");
    await shows(page, "what is found", names, ["digits-mlp"]);
    await addressMatches(page, /state=completed.*find=digi|find=digi.*state=completed/);
  });

  await step("long figures are not cut, in a narrow window either", async () => {
    const size = page.viewportSize();
    await page.getByLabel("Find sweeps by name").fill("wide");
    for (const width of [1500, 900]) {
      await page.setViewportSize({ width, height: size.height });
      const cell = region("Sweeps").getByText("50,000 / 50,000");
      await until(page, `the whole text at ${width}`, () => cell.evaluate((c) => { const td = c.closest("td"); return td.scrollWidth - td.clientWidth; }), (over) => over <= 0);
    }
    await page.setViewportSize(size);
    await page.getByLabel("Find sweeps by name").fill("digi");
  });

  await step("a sweep: as many points as completed trials, the best, the ensemble with its note", async () => {
    await leave(page, () => page.getByRole("link", { name: "digits-mlp" }).click());
    await loaded("digits-mlp");
    const best = fixture.sweeps.get("digits-mlp").view.best;
    await shows(page, "the best", titleOf("best"), best.value);
    const panel = region("Ensemble");
    await matches(page, "the ensemble", text(panel), /0\.01487/);
    await matches(page, "what to use", text(panel), /within the noise.*Recommended\s*ensemble/s);
    await matches(page, "its note", text(panel), /all 539 held-out rows.*what was chosen without a fold predicts it/s);
    await shows(page, "its members", () => panel.locator("tbody tr").count(), 6);
    await page.getByText("Sweep document").click();
    await matches(page, "the document", text(page.locator(".document pre")), /^name: digits-mlp\n[^]*lr: \{type: float, min: 0.0001, max: 0.3, scale: log\}/);
  });

  await step("the chart: logarithmic, with the values beyond its scale; a click opens a trial", async () => {
    const history = region("History");
    await history.getByText("1 off the scale").waitFor();
    await history.getByLabel("Show all values").check();
    await history.getByLabel("Log scale").check();
    await addressMatches(page, /far=show&y=log/);
    await history.getByText("1 off the scale").waitFor({ state: "detached" });
    const over = history.locator(".u-over");
    const middle = async () => ({ x: (await over.boundingBox()).width / 2, y: 40 });
    await over.hover({ position: await middle() });
    await matches(page, "what is under the pointer", text(history.locator(".tip .head")), /#(19|20) completed/);
    const position = await middle();
    await leave(page, () => over.click({ position }));
    await page.getByRole("heading", { name: /^#(19|20)$/ }).waitFor();
    await leave(page, () => page.goBack());
    await loaded("digits-mlp");
    await history.getByLabel("Log scale").uncheck();
  });

  await step("what may still be gained: the band, the figure, the reason of the end", async () => {
    await page.getByText("at most 0.008 of val_error was left to gain after 38 completed trials").waitFor();
    await region("History").getByText("may still be gained", { exact: true }).waitFor();
    const bounds = Number(await region("History").getAttribute("data-bounds"));
    assert.ok(bounds > 10, `${bounds} bounds`);
    await matches(page, "at most so much", text(region("Progress")), /May still gain\s*≤ 0\.0\d+/);
  });

  await step("trials in order of value both ways, those without one last; by state", async () => {
    await orderBy(page, "Trials", "val_error", "ascending");
    assertOrdered(await column(page, "Trials", "val_error"), false);
    await orderBy(page, "Trials", "val_error", "descending");
    assertOrdered(await column(page, "Trials", "val_error"), true);
    await addressMatches(page, /sort=value&order=desc/);
    await page.getByRole("button", { name: "failed 2" }).click();
    await shows(page, "those that failed", columnOf("Trials", "State"), ["failed", "failed"]);
    await page.getByRole("button", { name: "All 40" }).click();
    await shows(page, "rows", () => rowsOf(page, "Trials"), 40);
    await orderBy(page, "Trials", "momentum", "ascending");
    const momentum = await column(page, "Trials", "momentum");
    assert.ok(momentum.findIndex((m) => m === "") > 0, "inactive parameters come last");
  });

  await step("groups: which trials trained in one process; only those of one", async () => {
    const groups = await column(page, "Trials", "Group");
    assert.ok(new Set(groups).size > 3 && groups.includes("g16.1"), String(groups));
    await page.getByRole("link", { name: "g16.1" }).first().click();
    const numbers = () => column(page, "Trials", "Trial").then((cells) => cells.map(Number).sort((a, b) => a - b));
    await shows(page, "the group", numbers, [16, 18, 19, 20, 21, 22, 23]);
    await addressMatches(page, /group=digits-mlp\.g16\.1/);
    await leave(page, () => page.getByRole("link", { name: "18", exact: true }).click());
    await heading("#18").waitFor();
    await page.getByText("Shape: digits; mlp up to 91 42").waitFor();
    await matches(page, "its attempt", text(region("Attempts")), /box-\d g16\.1/);
    await leave(page, () => page.getByRole("link", { name: "g16.1" }).click());
    await shows(page, "the group again", numbers, [16, 18, 19, 20, 21, 22, 23]);
    await page.getByRole("button", { name: "Group g16.1" }).click();
    await shows(page, "all of them", () => rowsOf(page, "Trials"), 40);
    await openSweep("tuned");
    assert.equal(await page.getByRole("columnheader", { name: "Group" }).count(), 0);
  });

  await step("a filter as one types, in words where it is wrong; selected trials; columns", async () => {
    const done = fixture.sweeps.get("digits-mlp").trials;
    const passing = done.filter((t) => t.params.lr < 0.01 && t.params.optimizer === "sgd").map((t) => t.number);
    await openSweep("digits-mlp");
    const panel = region("All trials");
    await panel.getByLabel("Filter").fill("lr < 0.01 and optimizer == 'sgd'");
    await shows(page, "rows", () => rowsOf(page, "Trials"), passing.length);
    await addressMatches(page, /filter=lr/);
    await panel.getByRole("button", { name: "Select these" }).click();
    await matches(page, "what is selected", text(panel.getByRole("group", { name: "Selected trials" })), new RegExp(`^${passing.length} selected`));
    await panel.getByLabel("Filter").fill("lrr < 0.01");
    await matches(page, "the error", text(panel.locator("#filter-error")), /character 1: unknown name 'lrr'; did you mean 'lr'\?/);
    await shows(page, "all rows", () => rowsOf(page, "Trials"), done.length);
    await leave(page, () => page.reload());
    await loaded("digits-mlp");
    await matches(page, "the selection is in the address", text(panel.getByRole("group", { name: "Selected trials" })), new RegExp(`^${passing.length} selected`));
    const saved = page.waitForEvent("download");
    await panel.getByRole("button", { name: "Save CSV" }).click();
    const lines = readFileSync(await (await saved).path(), "utf8").trim().split("\r\n");
    assert.deepEqual(lines.slice(1).map((l) => Number(l.split(",")[0])), passing);
    await panel.getByText("Columns", { exact: true }).click();
    await panel.locator(".chooser").getByLabel("momentum").uncheck();
    await addressMatches(page, /columns=/);
    assert.equal(await region("Trials").getByRole("button", { name: "momentum" }).count(), 0);
    await panel.getByText("Columns", { exact: true }).click(); // closes the list, which lies above the buttons
    await panel.getByRole("button", { name: "Select none" }).click();
    await panel.getByLabel("Select trial 3", { exact: true }).check();
    await addressMatches(page, /picked=3/);
  });

  await step("the history follows the filter and the selection; a part of it is in the address, by buttons and by dragging", async () => {
    const { trials } = fixture.sweeps.get("digits-mlp");
    const completed = (t) => t.state === "completed";
    await visitAnew("#/sweeps/digits-mlp?filter=number+%3C+20&picked=3-5");
    const history = region("History");
    const label = attribute(history.getByRole("img"), "aria-label");
    await shows(page, "trials that pass", chartPoints, trials.slice(0, 20).filter(completed).length);
    await shows(page, "highlighted ones", attribute(history, "data-highlighted"), "3");
    await matches(page, "both in words", label, /of 19 completed trials [^]*; 3 are highlighted\./);
    await history.getByText("3 highlighted", { exact: true }).waitFor();
    const saved = page.waitForEvent("download");
    await history.getByRole("button", { name: "CSV" }).click();
    const rows = readFileSync(await (await saved).path(), "utf8").trim().split("\r\n").map((l) => l.split(","));
    assert.deepEqual(rows.filter((r) => r[4] === "1").map((r) => Number(r[0])), [3, 4, 5]);
    assert.deepEqual(rows.slice(1).map((r) => Number(r[0])), trials.slice(0, 20).map((t) => t.number));
    const parts = history.getByRole("group", { name: "Part of the trials" });
    await parts.getByRole("button", { name: "Zoom in" }).focus();
    await page.keyboard.press("Enter");
    await addressMatches(page, /part=5-14/);
    await matches(page, "the part in words", label, /from trial 5 to 14/);
    await shows(page, "highlighted ones in it", attribute(history, "data-highlighted"), "1");
    await leave(page, () => page.reload());
    await matches(page, "the same after a reload", label, /from trial 5 to 14/);
    await parts.getByRole("button", { name: "Whole" }).click();
    await shows(page, "the address", async () => /part=/.test(await hash()), false);
    const over = history.locator(".u-over");
    const box = await over.boundingBox();
    await page.mouse.move(box.x + box.width / 4, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + (3 * box.width) / 4, box.y + 90);
    await page.mouse.up();
    await addressMatches(page, /part=5-14/);
    await over.dblclick({ position: { x: 5, y: 5 } });
    await shows(page, "the address", async () => /part=/.test(await hash()), false);
    await visitAnew("#/sweeps/digits-mlp?part=7-9&filter=number+%3E+99");
    await history.getByText("No trial lies in this part.").waitFor();
  });

  await step("live: what happens is shown without a reload", async () => {
    await openSweep("live");
    await page.evaluate(() => { window.sameDocument = true; });
    for (let i = 0; i < 3; i++) fixture.finish("live");
    const winner = fixture.finish("live", 0.001);
    await allPoints("live");
    await shows(page, "best", text(page.getByTestId("best")), "0.001");
    await page.getByRole("link", { name: `#${winner.number}`, exact: true }).waitFor();
    const running = fixture.sweeps.get("live").trials.find((t) => t.state === "running");
    running.value = 0.4321;
    fixture.emit("trial.measured", { sweep: "live", number: running.number, attempt: 1, value: 0.4321 });
    await region("Trials").getByText("0.4321").waitFor();
    assert.equal(await page.evaluate(() => window.sameDocument), true);
  });

  await step("live: a burst of events is a few reloads one after the other, not one for each", async () => {
    const from = performance.now();
    for (let i = 0; i < 200; i++) fixture.emit("trial.changed", { sweep: "live", number: 0, state: "completed", attempt: 1 });
    fixture.finish("live");
    await allPoints("live");
    const loads = fixture.requests.filter((r) => r.from > from && r.path === "/v1/sweeps/live");
    assert.ok(loads.length > 0);
    // The page waits 250 ms from the end of a load to the next; its clock differs from ours by a
    // few ms.
    for (let i = 1; i < loads.length; i++) assert.ok(loads[i].from - loads[i - 1].to > 240, `two loads within ${loads[i].from - loads[i - 1].to} ms`);
  });

  await step("live: a cut stream is taken up again where it ended", async () => {
    browser.expect(/ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION|ERR_EMPTY_RESPONSE/);
    await page.getByText("Live", { exact: true }).waitFor();
    const before = fixture.streams().ever;
    fixture.cut();
    fixture.finish("live");
    await until(page, "another stream", async () => fixture.streams().ever, (n) => n > before);
    await allPoints("live");
    await page.getByText("Live", { exact: true }).waitFor();
  });

  await step("pause, resume and cancel; cancelling asks first", async () => {
    const button = (name) => page.getByRole("button", { name, exact: true });
    await button("Pause").click();
    await button("Resume").click();
    await button("Pause").waitFor();
    await button("Cancel…").click();
    await button("Keep it").click();
    await button("Keep it").waitFor({ state: "hidden" });
    await button("Cancel…").click();
    await button("Cancel the sweep").click();
    await page.locator(".head .state-cancelled").waitFor();
    await button("Cancel…").waitFor({ state: "detached" });
    const asked = fixture.requests.filter((r) => r.method === "PATCH").map((r) => r.body.state);
    assert.deepEqual(asked, ["paused", "running", "cancelled"], "each once, and nothing when it was only asked");
    assert.equal(fixture.sweeps.get("live").base.state, "cancelled");
  });

  await step("limits: what is wrong is said, a note is shown, and only what was changed is sent", async () => {
    await openSweep("digits-mlp");
    const button = (name) => page.getByRole("button", { name, exact: true });
    await button("Limits…").click();
    const dialog = page.getByRole("dialog", { name: "Limits of digits-mlp" });
    browser.expect(/400 \(Bad Request\) .*\/v1\/sweeps\/digits-mlp$/);
    await dialog.getByLabel("Time of the sweep").fill("1e5s");
    await button("Change limits").click();
    await dialog.getByRole("alert").filter({ hasText: "/limits/wall_time: found '1e5s'" }).waitFor();
    await dialog.getByLabel("Time of the sweep").fill("6h");
    await dialog.getByLabel("Time of a trial").fill("");
    assert.equal(await dialog.getByLabel("Ends when so little is left to gain").inputValue(), "0.01");
    await dialog.getByLabel("Ends when so little is left to gain").fill("2%");
    await dialog.getByLabel("Trials", { exact: true }).fill("1");
    await button("Change limits").click();
    await dialog.getByRole("status").filter({ hasText: "no more are made" }).waitFor();
    await button("Close").click();
    await dialog.waitFor({ state: "hidden" });
    const sent = fixture.requests.filter((r) => r.method === "PATCH" && r.body.limits).map((r) => r.body.limits);
    assert.deepEqual(sent.at(-1), { max_trials: 1, trial_timeout: null, wall_time: "6h", stop_when: { relative: 0.02, min_trials: 30 } });
    await button("Limits…").click();
    assert.equal(await dialog.getByLabel("Time of the sweep").inputValue(), "6h");
    await button("Keep them").click();
    await dialog.waitFor({ state: "hidden" });
  });

  await step("a failed trial is tried again, and so are all of a sweep", async () => {
    const sweep = fixture.sweeps.get("digits-mlp");
    const more = sweep.trials.filter((t) => t.state === "completed").slice(-3);
    const kept = more.map((t) => ({ ...t }));
    for (const t of more) t.state = "failed";
    const failed = sweep.trials.filter((t) => t.state === "failed");
    const fail = () => { for (const t of failed) Object.assign(t, { state: "failed", reason: "exit code 1: loss is not a number at step 6", finished_at: new Date().toISOString() }); };
    assert.ok(failed.length > 2, "more than the fixture tries again in one request, also without the first");
    await openTrial("digits-mlp", failed[0].number);
    await page.getByRole("button", { name: "Retry", exact: true }).click();
    await page.locator(".head .state-queued").waitFor();
    await openSweep("digits-mlp");
    await page.getByRole("button", { name: "Retry failed…", exact: true }).click();
    await page.getByRole("button", { name: "Retry them", exact: true }).click();
    await page.getByRole("button", { name: "Retry failed…", exact: true }).waitFor({ state: "detached" });
    assert.ok(failed.every((t) => t.state === "queued"));
    fail();
    const asked = (path) => fixture.requests.filter((r) => r.method === "POST" && r.path === path).length;
    assert.ok(asked("/v1/sweeps/digits-mlp/retry") > 1);
    await visitAnew("#/sweeps/digits-mlp?state=failed&sort=reason");
    await shows(page, "rows", () => rowsOf(page, "Trials"), failed.length);
    const panel = region("All trials");
    await shows(page, "why they failed", async () => new Set(await columnOf("Trials", "Reason")()), new Set([failed[0].reason]));
    await page.evaluate((picked) => { location.hash += `&picked=${picked}`; }, failed.map((t) => t.number).join(","));
    const retryThem = panel.getByRole("button", { name: `Retry ${failed.length}…` });
    await retryThem.waitFor();
    failed[0].state = "running"; // by another hand, and its event is on its way
    browser.expect(/status of 409/);
    await retryThem.click();
    await page.getByRole("button", { name: "Retry them", exact: true }).click();
    await matches(page, "how many were refused, and why", text(page.getByRole("alert")), new RegExp(`^1 of ${failed.length} could not be retried: trial ${failed[0].number} is running`));
    assert.ok(failed.slice(1).every((t) => t.state === "queued"), "one that cannot be retried does not keep the others from it");
    await page.getByRole("button", { name: "Dismiss" }).click();
    fail();
    more.forEach((t, i) => Object.assign(t, kept[i]));
  });

  await step("5,000 trials: few rows are made, the last is reached, the order is right", async () => {
    await openSweep("big", "?sort=value");
    const table = region("Trials");
    await until(page, "rows that are made", () => table.locator("tbody tr").count(), (n) => n > 10 && n < 120);
    assertOrdered(await column(page, "Trials", "val_error"), false);
    await table.evaluate((r) => r.scrollTo(0, r.scrollHeight));
    const failed = fixture.sweeps.get("big").trials.filter((t) => t.state === "failed").map((t) => String(t.number));
    await until(page, "the last rows", columnOf("Trials", "Trial"), (c) => c.at(-1) === failed.at(-1));
    await until(page, "rows that are made", () => table.locator("tbody tr").count(), (n) => n > 10 && n < 120);
    const moved = await table.evaluate(async (r) => {
      const heights = new Set();
      for (let y = 0; y < r.scrollHeight; y += 20_000) {
        r.scrollTo(0, y);
        await new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });
        heights.add(r.scrollHeight);
      }
      return [...heights];
    });
    assert.equal(moved.length, 1, `the height of the table jumps while scrolling: ${moved}`);
  });

  await step("5,000 predictions are drawn when asked for, and taken away", async () => {
    const history = region("History");
    browser.expect(/willReadFrequently/); // the test reads the canvas again and again, not the page
    const drawn = () => history.locator("canvas").evaluate((c) => { let n = 0; const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height); for (let i = 3; i < data.length; i += 4) n += data[i] > 0 ? 1 : 0; return n; });
    const inColour = (rgb) => history.locator("canvas").evaluate((c, wanted) => { let n = 0; const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height); for (let i = 0; i < data.length; i += 4) if (data[i] === wanted[0] && data[i + 1] === wanted[1] && data[i + 2] === wanted[2] && data[i + 3] === 255) n++; return n; }, rgb);
    const pixels = await inColour([0x80, 0x95, 0xbb]); // --point of the light theme
    assert.ok(pixels > 10_000 && pixels < 45_000, `${pixels} pixels of trials, 9 of each that lies apart`);
    const before = await drawn(); // the chart reports the number of its points; here of all trials
    await history.getByLabel("Predictions").check();
    await addressMatches(page, /predicted=show/);
    await until(page, "whiskers", drawn, (n) => n > before);
    await history.getByText("predicted", { exact: true }).waitFor();
    assert.deepEqual(fixture.requests.filter((r) => r.path === "/v1/sweeps/big/trials"), [], "predictions come with the table");
    await history.getByLabel("Predictions").uncheck();
    await shows(page, "no whiskers", drawn, before);
  });

  await step("importance: total, alone and interval of each parameter; the reason where there are none", async () => {
    await openSweep("tuned");
    const panel = region("Importance");
    const { parameters, r2, trials } = fixture.sweeps.get("tuned").importance();
    await inSight("Importance", "the shares", importanceRows, (rows) => rows.length === parameters.length);
    assert.deepEqual(await importanceRows(),
      parameters.map((p) => [p.name === "momentum" ? "momentum *" : p.name, "", p.total.toFixed(2), `${p.total_low.toFixed(2)}–${p.total_high.toFixed(2)}`, p.first.toFixed(2)]));
    assert.equal(await panel.getByTestId("r2").innerText(), r2.toFixed(2));
    assert.match(await panel.innerText(), new RegExp(`${trials} trials[^]*where the parameter is active`));
    const at = await panel.locator(".share").first().evaluate((bar) => { const all = bar.getBoundingClientRect(); return Object.fromEntries([...bar.children].map((c) => { const b = c.getBoundingClientRect(); return [c.className, [b.left, b.right].map((x) => Math.round((100 * (x - all.left)) / all.width))]; })); });
    assert.deepEqual(at, { total: [0, 80], alone: [0, 56], range: [68, 100] });
    const young = fixture.sweeps.get("nasty");
    await openSweep("nasty");
    await inSight("Importance", "the reason", text(panel), (t) => t.includes(`Not known: ${young.importance().reason}.`));
  });

  await step("importance for each objective: the address says which", async () => {
    await openSweep("two");
    const panel = region("Importance");
    const two = fixture.sweeps.get("two");
    const named = (metric) => (rows) => JSON.stringify(rows.map((r) => r[0].replace(" *", ""))) === JSON.stringify(two.importance(metric).parameters.map((p) => p.name));
    await inSight("Importance", "the first objective's", importanceRows, named("val_error"));
    await panel.getByRole("button", { name: "latency/p99.ms" }).click();
    await inSight("Importance", "the other objective's", importanceRows, named("latency/p99.ms"));
    await addressMatches(page, /importance=latency%2Fp99\.ms/);
    await shows(page, "the heading", () => panel.getByTestId("importance-of").innerText(), "latency/p99.ms");
    await leave(page, () => page.reload());
    await inSight("Importance", "the same after a reload", importanceRows, named("latency/p99.ms"));
    await panel.getByRole("button", { name: "val_error" }).click();
    await inSight("Importance", "the first again", importanceRows, named("val_error"));
    await openSweep("tuned");
    assert.equal(await panel.locator(".chips button").count(), 0, "one objective needs no choice");
  });

  await step("importance is asked for when it is seen, and not again within three seconds", async () => {
    const from = performance.now();
    const asked = () => fixture.requests.filter((r) => r.from > from && r.path === "/v1/sweeps/live/importance");
    const sweep = fixture.sweeps.get("live");
    const another = () => {
      const t = sweep.add("completed");
      fixture.emit("trial.changed", { sweep: "live", number: t.number, state: "completed", attempt: 1 });
    };
    const panelSays = () => inSight("Importance", "how many trials", text(region("Importance")), (t) => t.includes(`${pointsIn("live")} trials`));
    await page.setViewportSize({ width: 1440, height: 320 });
    await openSweep("live");
    another();
    await allPoints("live"); // a load after the one that created the panel
    assert.equal(asked().length, 0, "not while it is below the fold");
    await panelSays();
    assert.equal(asked().length, 1);
    for (let i = 0; i < 3; i++) {
      for (let n = 0; n < 5; n++) another();
      await allPoints("live");
    }
    await panelSays();
    const times = asked();
    assert.ok(times.length > 1);
    for (let i = 1; i < times.length; i++) assert.ok(times[i].from - times[i - 1].to > 2990, `asked again after ${times[i].from - times[i - 1].to} ms`);
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  await step("infeasible trials are marked, and none is the best; where parameters come from", async () => {
    await openSweep("tuned", "?sort=value");
    const { best } = fixture.sweeps.get("tuned").view;
    await shows(page, "the best", titleOf("best"), best.value);
    assert.ok(best.value > 0.001 && best.number !== 30);
    await matches(page, "the chart in words", attribute(region("History").locator("[role=img]"), "aria-label"), new RegExp(`trial ${best.number}\\.`));
    await region("History").locator(".legend").getByText("infeasible").waitFor();
    const first = (name) => column(page, "Trials", name).then((cells) => cells[0]);
    assert.deepEqual([await first("Trial"), await first("Feasible"), await first("latency/p99.ms")], ["30", "no", "21.5"], "it has the lowest value all the same");
    await matches(page, "the bound", text(page.locator(".facts")), /latency\/p99\.ms <= 16/);
    await orderBy(page, "Trials", "Origin", "ascending");
    assert.deepEqual((await column(page, "Trials", "Origin")).slice(0, 3), ["enqueued", "known", "suggested"]);
    await openTrial("tuned", 30);
    await page.locator(".head .state-infeasible").waitFor();
    await matches(page, "its metrics", text(region("Metrics")), /latency\/p99\.ms <= 16\s+21\.5 \(broken\)/);
    await openTrial("tuned", 0);
    await page.getByText("A known result, added by hand.").waitFor();
  });

  await step("why these parameters: in words, with what was foretold and what came", async () => {
    const trial = fixture.sweeps.get("tuned").trials.find((t) => t.number >= 20 && t.state === "completed" && t.suggestion.acquisition === "ucb");
    const { predicted, incumbent, observed } = trial.suggestion;
    await openTrial("tuned", trial.number);
    const why = region("Why these parameters");
    await matches(page, "the reason", text(why.getByTestId("why")), new RegExp(`^Chosen by upper confidence bound: predicted [0-9.]+ ± [0-9.]+.*; the best so far was trial ${incumbent.number} with [0-9.]+; ${observed} results seen`));
    await shows(page, "what came", titleOf("came"), trial.value);
    const off = Math.abs(trial.value - predicted.mean) / predicted.deviation;
    const said = /([0-9.]+) deviations (above|below)/.exec(await why.innerText());
    assert.ok(said ? Math.abs(Number(said[1]) - off) < 0.06 * off && (said[2] === "above") === trial.value > predicted.mean : off < 0.05, `${off}: ${said}`);
    await leave(page, () => why.getByRole("link", { name: `#${incumbent.number}`, exact: true }).click());
    await heading(`#${incumbent.number}`).waitFor();
    await openTrial("two", 20);
    await shows(page, "two predictions", () => why.locator("figure").count(), 2);
    await matches(page, "the reason", text(why.getByTestId("why")), /^Chosen by expected hypervolume improvement: predicted val_error .* ± .*, latency\/p99\.ms .* ± /);
  });

  await step("the front of two objectives: its trials, its volume; a click opens the trial", async () => {
    await openSweep("two");
    const panel = region("Pareto");
    const { items } = fixture.sweeps.get("two").pareto();
    await inSight("Pareto", "the front", attribute(panel, "data-front"), (n) => n === String(items.length));
    await shows(page, "the volume", text(panel.getByTestId("hypervolume")), "12.35");
    await shows(page, "the list", () => panel.locator("tbody a").allInnerTexts(), [...items].sort((a, b) => a.value - b.value).map((t) => `#${t.number}`));
    await matches(page, "the chart in words", attribute(panel.locator("[role=img]"), "aria-label"), new RegExp(`${items.length} of them on the front`));
    const over = panel.locator(".u-over");
    await over.scrollIntoViewIfNeeded();
    await frames(page); // the chart has handled the scroll
    const box = await over.boundingBox();
    const tip = panel.locator(".tip:not([hidden])");
    let found = null; // search a grid that is finer than the reach of the pointer for a point of the front
    for (let x = 10; x < box.width && !found; x += 16)
      for (let y = 10; y < box.height && !found; y += 16) {
        await page.mouse.move(box.x + x, box.y + y);
        if (/on the front/.test((await tip.allInnerTexts()).join())) found = { x: box.x + x, y: box.y + y };
      }
    assert.ok(found, "no point of the front under the pointer");
    await leave(page, () => page.mouse.click(found.x, found.y));
    await page.getByRole("heading", { name: /^#\d+$/ }).waitFor();
    const opened = await hash();
    assert.ok(items.some((t) => opened.endsWith(`/two/trials/${t.number}`)), opened);
  });

  await step("the front follows the filter and the selection; a box that is dragged selects in every view", async () => {
    const { trials } = fixture.sweeps.get("two");
    await visitAnew("#/sweeps/two?filter=number+%3C+40&picked=3-5");
    const panel = region("Pareto");
    await inSight("Pareto", "trials that pass", attribute(panel, "data-points"), (n) => n === "40");
    await inSight("Pareto", "highlighted ones", attribute(panel, "data-highlighted"), (n) => n === "3");
    await matches(page, "both in words", attribute(panel.getByRole("img"), "aria-label"), /of 40 completed trials, \d+ of them on the front\. 3 are highlighted\./);
    const saved = page.waitForEvent("download");
    await panel.getByRole("button", { name: "CSV" }).click();
    const rows = readFileSync(await (await saved).path(), "utf8").trim().split("\r\n").map((l) => l.split(","));
    assert.equal(rows[0].join(), "number,val_error,latency/p99.ms,kind,highlighted");
    assert.deepEqual(rows.filter((r) => r[4] === "1").map((r) => Number(r[0])), [3, 4, 5]);
    await panel.getByRole("button", { name: "Clear" }).click();
    await shows(page, "nothing is highlighted", attribute(panel, "data-highlighted"), "0");
    const over = panel.locator(".u-over");
    await over.scrollIntoViewIfNeeded();
    await frames(page);
    const box = await over.boundingBox();
    await page.mouse.move(box.x + 1, box.y + 1);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height - 1);
    await page.mouse.up();
    await addressMatches(page, /brush=.*value.*metric%3Alatency/);
    const { value: [low, high], "metric:latency/p99.ms": [less, more] } = JSON.parse(new URLSearchParams((await hash()).split("?")[1]).get("brush"));
    const within = trials.filter((t) => t.number < 40 && t.value >= low && t.value <= high && t.metrics["latency/p99.ms"] >= less && t.metrics["latency/p99.ms"] <= more).length;
    assert.ok(within > 5 && within < 40, String(within));
    await shows(page, "what is highlighted here", attribute(panel, "data-highlighted"), String(within));
    await shows(page, "and in the history", attribute(region("History"), "data-highlighted"), String(within));
    await shows(page, "and in the table", () => region("All trials").getByRole("group", { name: "Selected trials" }).locator("b").first().innerText(), String(within));
  });

  await step("what was foretold is in the table: columns, an order, a filter", async () => {
    const { trials } = fixture.sweeps.get("two");
    await visitAnew("#/sweeps/two?sort=predicted.val_error&columns=%5B%22number%22%2C%22predicted.val_error%22%2C%22deviation.val_error%22%2C%22predicted.latency%2Fp99.ms%22%5D");
    const foretold = trials.filter((t) => t.suggestion.predicted);
    assert.ok(foretold.length > 20 && foretold.length < trials.length);
    await shows(page, "rows", () => rowsOf(page, "Trials"), trials.length);
    assertOrdered(await column(page, "Trials", "val_error predicted"), false);
    const least = Math.min(...foretold.map((t) => t.suggestion.predicted[1].mean));
    await page.getByLabel("Filter", { exact: true }).fill("predicted:latency/p99.ms < 10 and abs(val_error - predicted:val_error) > deviation:val_error");
    const off = foretold.filter(({ value, suggestion: { predicted: [p, l] } }) => l.mean < 10 && Math.abs(value - p.mean) > p.deviation);
    assert.ok(least < 10 && off.length > 0);
    await shows(page, "those that pass", () => rowsOf(page, "Trials"), off.length);
    await openSweep("digits-mlp");
    await region("All trials").getByText("Columns", { exact: true }).click();
    assert.equal(await region("All trials").locator(".chooser").getByLabel(/predicted/).count(), 0, "nothing was foretold");
  });

  await step("three objectives: any two of them are the axes, and the address says which", async () => {
    await openSweep("three");
    const panel = region("Pareto");
    const label = attribute(panel.locator("[role=img]"), "aria-label");
    const { items } = fixture.sweeps.get("three").pareto();
    await inSight("Pareto", "the front", label, (l) => l.startsWith("latency/p99.ms (minimize) against val_error (minimize) of 30 ") && l.includes(` ${items.length} of them`));
    await panel.getByLabel("Across").selectOption("depth");
    await matches(page, "the axis across", label, /^val_error \(minimize\) against depth \(maximize\)/);
    await panel.getByLabel("Up").focus();
    await page.keyboard.press("ArrowDown");
    await matches(page, "the other axis", label, /^latency\/p99\.ms \(minimize\) against depth/);
    await addressMatches(page, /px=depth&py=latency%2Fp99\.ms/);
    await panel.getByText("infeasible").waitFor();
    assert.ok(items.every((t) => t.feasible));
  });

  await step("a sweep that runners leave alone says so, and how to ask", async () => {
    await browser.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await openSweep("asked");
    const panel = region("Ask and tell");
    await panel.getByText("Runners leave this sweep alone").waitFor();
    const lines = (await panel.locator("pre").innerText()).split("\n");
    assert.equal(lines.length, 3);
    assert.ok(lines[0].endsWith(`U='${fixture.url}/v1/sweeps/asked/suggestions'`), lines[0]);
    await panel.getByRole("button", { name: "Copy" }).click();
    await shows(page, "the clipboard", () => page.evaluate(() => navigator.clipboard.readText()), lines.join("\n"));
    await openSweep("live");
    assert.equal(await panel.count(), 0);
  });

  await step("all output of an attempt, with a search; files are looked at and never run", async () => {
    await openTrial("digits-mlp", 17);
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: /^Whole output/ }).click();
    await matches(page, "the last line", text(dialog.locator(".log")), /the end$/);
    await dialog.getByRole("searchbox").fill("needle");
    await matches(page, "the place", text(dialog.getByRole("status")), /^1 of 1$/);
    await matches(page, "the line that was found", text(dialog.locator("mark")), /^needle$/);
    await dialog.getByRole("button", { name: "Close" }).click();
    for (const [name, wanted] of [["confusion.png", /64 × 64 pixels/], ["bomb.png", /too many pixels/], ["evil.svg", /<script>window\.pwned=1/], ["evil.html", /<!doctype html>/], ["rows.csv", /The first 200 rows/], ["notes.json", /"layers": \[/], ["weights.bin", /neither text nor an image/], ["empty.txt", /0 lines/]]) {
      await page.getByRole("button", { name: `View ${name}` }).click();
      await matches(page, name, text(dialog), wanted);
      await dialog.getByRole("button", { name: "Close" }).click();
      await until(page, "the dialog", () => dialog.count(), (n) => n === 0);
    }
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    await openList();
  });

  await step("a trial: parameters, attempts, curves, output, files", async () => {
    await openTrial("digits-mlp", 17);
    const curves = region("Curves");
    await shows(page, "metrics", attribute(curves, "data-metrics"), "5");
    await shows(page, "train_loss and val_loss share a chart", () => curves.locator("figure").count(), 4);
    await curves.getByLabel("Log scale").check();
    await addressMatches(page, /y=log/);
    await matches(page, "the output", text(page.locator(".log")), /epoch 20\/20/);
    await matches(page, "the attempts", text(region("Attempts")), /lost[^]*completed/);
    await matches(page, "the notes are text", text(region("Notes")), /AdamW\(lr=0\.01\)[^]*<b>host<\/b>[^]*<i>node-7<\/i>/);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "model.safetensors", exact: true }).click()]);
    assert.equal(download.suggestedFilename(), "model.safetensors");
    assert.equal(readFileSync(await download.path(), "utf8"), "not really a model\n");
    await leave(page, () => page.getByTitle("Trial after this one").click());
    await heading("#18").waitFor();
    await openTrial("digits-mlp", 11);
    await curves.getByText(/^val_error NaN$/).waitFor(); // it ended in NaN, although earlier values can be drawn
  });

  await step("a large trial: its ranks, who is coming and who was lost", async () => {
    await openTrial("digits-mlp", 17);
    assert.equal(await region("Ranks").count(), 0);
    await openTrial("digits-mlp", 18);
    assert.equal(await region("Notes").count(), 0);
    await openTrial("digits-mlp", 38);
    const ranks = region("Ranks");
    await matches(page, "what the ranks do", text(ranks), /3 of 4, at least 1[^]*Epoch 7, step 1,?200, 2 lost, 1\.8 GB sent/);
    await shows(page, "members, who comes, and who is gone", () => ranks.locator("tbody tr").count(), 6);
    await matches(page, "the last row is the first rank that was lost", text(ranks.locator("tbody tr").last()), /lost[^]*signal 9 <img/);
    await matches(page, "the attempt of ranks", text(region("Attempts")), /4 ranks/);
  });

  await step("a sweep of large trials of commands: ranks where the runner would be, and no word about an ensemble", async () => {
    await openSweep("ranks");
    await loaded("ranks");
    await shows(page, "who ran them", columnOf("Trials", "Runner"), ["4 ranks", "4 ranks", "4 ranks", ""]);
    await region("Trials").waitFor();
    await until(page, "the answer about the ensemble", async () => fixture.requests.some((r) => r.path.endsWith("/v1/sweeps/ranks/ensemble")), (asked) => asked);
    assert.equal(await region("Ensemble").count(), 0);
    fixture.sweeps.get("ranks").predicted = 1; // with one that left predictions, why there is none is worth a word
    await visit("#/sweeps");
    await openSweep("ranks");
    await matches(page, "why there is no ensemble", text(region("Ensemble")), /fewer than two/);
  });

  await step("a lone curve has the width of its card", async () => {
    await openTrial("ranks", 1);
    await matches(page, "what ran it", text(region("Facts")), /Runner\s*4 ranks/);
    const figure = region("Curves").locator("figure");
    await shows(page, "curves", () => figure.count(), 1);
    await until(page, "its share of the card", async () => (await figure.boundingBox()).width / (await region("Curves").boundingBox()).width, (share) => share > 0.9);
  });

  await step("the arrow keys go to the trial before and the one after, but not out of what uses them", async () => {
    await openTrial("digits-mlp", 38);
    await leave(page, () => page.keyboard.press("ArrowRight"));
    await heading("#39").waitFor();
    await page.keyboard.press("ArrowRight"); // it is the last one
    await leave(page, () => page.keyboard.press("ArrowLeft"));
    await heading("#38").waitFor();
    await openTrial("digits-mlp", 17);
    await page.getByRole("combobox").focus();
    await page.keyboard.press("ArrowRight");
    await page.locator(".log").focus();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("heading", { name: "Curves" }).click(); // no focus
    await page.keyboard.press("Control+ArrowRight");
    await leave(page, () => page.keyboard.press("ArrowRight"));
    await heading("#18").waitFor(); // and none of the presses before went on
  });

  await step("early stopping: its rungs in a sweep, the decisions in a trial, and what is wrong", async () => {
    await openSweep("stopped");
    const sweep = fixture.sweeps.get("stopped");
    const report = sweep.base.early_stopping;
    const panel = region("Early stopping");
    const rows = () => panel.locator("tbody tr").evaluateAll((all) => all.map((r) => [...r.children].map((c) => c.innerText.trim()).filter((t) => t !== "").map(Number)));
    await shows(page, "the rungs", rows, report.rungs.map((r) => [r.step, r.reached, r.stopped, r.paused, r.obeyed, r.disobeyed]));
    assert.equal(report.rungs.reduce((n, r) => n + r.disobeyed, 0), 1);
    await shows(page, "steps saved", text(panel.getByTestId("steps-saved")), report.steps_saved.toLocaleString("en-US"));
    const bar = await panel.locator(".rung").first().evaluate((b) => [...b.children].map((c) => Math.round(10 * 100 * c.getBoundingClientRect().width / b.getBoundingClientRect().width) / 10));
    const [first] = report.rungs;
    [first.reached - first.stopped - first.paused, first.paused, first.stopped].forEach((n, i) => assert.ok(Math.abs(bar[i] - (100 * n) / first.reached) < 1.5, `${bar}`));
    report.warning = "No value at a rung: the first trial reported the steps 5, 10, 15";
    fixture.emit("sweep.changed", { sweep: "stopped", state: "running" });
    await panel.getByText(report.warning).waitFor();
    report.warning = null;
    await openTrial("stopped", 9);
    const decisions = () => region("Rungs").locator("li").evaluateAll((all) => all.map((li) => li.innerText.replace(/\s+/g, " ")));
    const seen = await until(page, "the decisions", decisions, (d) => d.length === sweep.trials[9].rungs.length);
    sweep.trials[9].rungs.forEach((r, i) => assert.ok(seen[i].startsWith(`Step ${r.step}`) && seen[i].endsWith(r.reason), seen[i]));
    assert.match(seen[1], /promoted/);
    const facts = region("Facts");
    await matches(page, "its forks", text(facts), /Forks\s*#41 from step 3, #44 from step 9/);
    await facts.getByRole("link", { name: "#44" }).click();
    await matches(page, "what it goes on from", text(facts), /Parent\s*#9 at step 9/);
    assert.match(await facts.getByRole("link", { name: "#9" }).getAttribute("href"), /stopped\/trials\/9$/);
    await openTrial("stopped", 4);
    await matches(page, "how long it ran before it waited, which it does since yesterday", text(facts), /Ran\s*1 m 23 s/);
    await openTrial("stopped", 10);
    await matches(page, "a value that is no number", text(region("Rungs")), /no number.*pruned/s);
    await openTrial("digits-mlp", 3);
    assert.equal(await region("Rungs").count(), 0);
  });

  await step("what the search has learned of the parameters, with the condition to copy", async () => {
    const { base } = fixture.sweeps.get("tuned");
    base.learned = [
      { parameter: "momentum", no_effect: [{ where: { optimizer: "adam" }, trials: 14 }, { where: { optimizer: "rmsprop" }, trials: 12 }], when: { optimizer: ["sgd"] } },
      { parameter: "width", no_effect: [{ where: { augment: true }, trials: 20 }, { where: { augment: false }, trials: 22 }] },
    ];
    await openSweep("tuned");
    const lines = () => region("What was learned").locator("li").evaluateAll((all) => all.map((li) => li.innerText.replace(/\s+/g, " ").trim()));
    await shows(page, "the parameters", lines, [
      "momentum has no effect where optimizer is adam (14 trials), nor where optimizer is rmsprop (12 trials). To declare it: when: {optimizer: [sgd]} Copy",
      "width has no effect where augment is true (20 trials), nor where augment is false (22 trials).",
    ]);
    await browser.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await region("What was learned").getByRole("button", { name: "Copy" }).click();
    await shows(page, "the clipboard", () => page.evaluate(() => navigator.clipboard.readText()), "when: {optimizer: [sgd]}");
    delete base.learned;
    await openSweep("two");
    assert.equal(await region("What was learned").count(), 0);
  });

  await step("parallel coordinates and slices: ranges by dragging and by keyboard, in the address, highlighted in both", async () => {
    await openSweep("tuned");
    const { trials } = fixture.sweeps.get("tuned");
    const done = trials.filter((t) => t.state === "completed");
    const panel = region("Parameters of all trials");
    const within = (low, high) => done.filter((t) => t.params.lr >= low && t.params.lr <= high).length;
    await shows(page, "the trials", attribute(panel, "data-drawn"), String(done.length));
    assert.match(await panel.innerText(), /infeasible/);
    await panel.getByText("Ranges", { exact: false }).last().click();
    await panel.getByLabel("lr, from").fill("0.001");
    await panel.getByLabel("lr, to").fill("0.02");
    await panel.getByLabel("lr, to").press("Tab");
    await shows(page, "the highlighted", attribute(panel, "data-marked"), String(within(0.001, 0.02)));
    await addressMatches(page, /brush=/);
    await panel.getByRole("button", { name: "Slices" }).click();
    await shows(page, "the same in the slices", attribute(panel, "data-marked"), String(within(0.001, 0.02)));
    await shows(page, "a slice of each parameter", () => panel.locator("figure").count(), Object.keys(fixture.sweeps.get("tuned").space).length);
    await leave(page, () => page.reload());
    await loaded("tuned");
    await shows(page, "the same after a reload", attribute(panel, "data-marked"), String(within(0.001, 0.02)));
    await panel.getByRole("button", { name: "Parallel coordinates" }).click();
    await panel.getByRole("button", { name: "Clear" }).click();
    await shows(page, "none", attribute(panel, "data-marked"), "0");
    const canvas = panel.getByRole("img");
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + 70, box.y + 34); // the upper half of the first axis, lr from 1e-4 to 0.3
    await page.mouse.down();
    await page.mouse.move(box.x + 70, box.y + 120);
    await page.mouse.move(box.x + 70, box.y + 34 + 306 / 2);
    await page.mouse.up();
    await addressMatches(page, /brush=/);
    const range = JSON.parse(new URLSearchParams((await hash()).split("?")[1]).get("brush"))["param:lr"];
    assert.ok(range[1] === null && Math.abs(Math.log10(range[0] / Math.sqrt(1e-4 * 0.3))) < 0.1, String(range));
    await shows(page, "those above", attribute(panel, "data-marked"), String(within(range[0], Infinity)));
    const names = () => panel.locator(".axis-name").evaluateAll((all) => all.map((b) => b.innerText));
    await panel.locator(".axis-name").first().press("ArrowRight");
    await until(page, "the axes", names, (n) => n[0] === "width" && n[1] === "lr");
    await addressMatches(page, /axes=/);
  });

  await step("downloads of a view: SVG with its title, PNG, and CSV with a line for each trial", async () => {
    await openSweep("nasty");
    const panel = region("Parameters of all trials");
    const saved = async (kind) => {
      const [file] = await Promise.all([page.waitForEvent("download"), panel.getByRole("button", { name: kind, exact: true }).first().click()]);
      return readFileSync(await file.path());
    };
    const svg = String(await saved("SVG"));
    assert.match(svg, /^<svg [^]*<title>Parallel coordinates of 2 completed trials[^]*<path [^]*<\/svg>\n$/);
    assert.doesNotMatch(svg, /<img|<script/);
    assert.equal((await saved("PNG")).subarray(1, 4).toString(), "PNG");
    const csv = String(await saved("CSV"));
    assert.match(csv, /^number,"param:<img [^]*__proto__,highlighted\r\n0,"<img /);
    assert.equal(csv.trim().split("\r\n").length, 3);
    await openSweep("big", "?explore=slices");
    await untilInSight(page, "5,000 trials", page.locator(".in-sight"), attribute(region("Parameters of all trials"), "data-drawn"), (n) => n === String(pointsIn("big")));
    await matches(page, "how many of them are drawn", text(region("Parameters of all trials")), /of [\d,]+ trials are drawn in each, evenly by/);
  });

  await step("hostile names, reasons and output are text, and nothing else", async () => {
    browser.expect(/status of 404/);
    const views = [
      ["#/sweeps", () => shows(page, "the rows", () => rowsOf(page, "Sweeps"), fixture.sweeps.size), "__proto__"],
      ["#/sweeps/nasty", () => loaded("nasty"), "<img"],
      ["#/sweeps/nasty/trials/0", () => matches(page, "the files", text(region("Artifacts")), /model/), "<img"],
      ["#/sweeps/nasty/trials/2", () => matches(page, "the files", text(region("Artifacts")), /None\./), "<img"],
      ["#/sweeps/<img%20src=x%20onerror=window.pwned=1>", () => page.getByRole("alert").waitFor(), "no sweep"],
    ];
    for (const [address, whole, shown] of views) {
      await visit(address);
      await whole();
      await until(page, "the view", text(page.locator("main")), (t) => t.includes(shown));
      assert.equal(await page.evaluate(() => document.querySelectorAll("main img, main script").length), 0);
    }
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  });

  await step("what is not there, is not yet there, and is a wrong address, is said", async () => {
    const streams = () => fixture.requests.filter((r) => r.path === "/v1/sweeps/nope/events").length;
    await visit("#/sweeps/nope");
    await heading("There is no sweep nope").waitFor();
    await frames(page);
    const began = streams();
    await page.getByRole("link", { name: "All sweeps" }).waitFor();
    assert.equal(await page.getByText("Connection lost").count(), 0, "the server is there");
    await new Promise((resolve) => { setTimeout(resolve, 1500); }); // a lost stream is tried again after half a second
    assert.equal(streams(), began, "the stream of what does not exist is not asked for again");
    await visit("#/sweeps/nope/trials/3");
    await heading("There is no sweep nope").waitFor();
    await visit("#/sweeps/digits-mlp/trials/99");
    await heading("There is no trial #99 in digits-mlp").waitFor();
    await leave(page, () => page.getByRole("link", { name: "The sweep digits-mlp" }).click());
    await heading("digits-mlp").waitFor();
    await visit("#/nowhere");
    await page.getByText("There is no such page").waitFor();
    await visit("#/sweeps/empty");
    await page.getByText("No trials yet, and none begins while the sweep is paused.").waitFor();
    assert.equal(await region("History").getByLabel("Log scale").count(), 0, "there is nothing to scale");
    await visit("#/runners");
    await page.getByText("1 live, 2 of 4 slots busy").waitFor();
  });

  await step("a trial that ended without a result does not wait for one", async () => {
    const ended = fixture.sweeps.get("tuned").trials.find((t) => t.state === "failed");
    const running = fixture.sweeps.get("live").add("running");
    running.suggestion = ended.suggestion;
    await openTrial("tuned", ended.number);
    await matches(page, "the result", text(page.getByTestId("none")), /^no result: the trial failed$/);
    assert.doesNotMatch(await page.locator("main").innerText(), /\byet\b/);
    await openTrial("live", running.number);
    await matches(page, "the result", text(page.getByTestId("none")), /^not known yet$/);
  });

  await step("models: the list; one model with its versions, what it takes and gives, and where it comes from", async () => {
    await leave(page, () => page.getByRole("link", { name: "Models", exact: true }).click());
    await shows(page, "names", columnOf("Models", "Model"), ["Bare.model-1", "digits"]);
    await shows(page, "aliases", columnOf("Models", "Aliases"), ["", "champion 2, candidate 3"]);
    await leave(page, () => page.getByRole("link", { name: "Bare.model-1" }).click());
    await page.getByText("It has no versions").waitFor();
    await openModel("digits", 2); // the champion
    await matches(page, "its metrics", text(region("Metrics")), /held-out rows, cross-fitted\s*error\s*0\.0149/s);
    await shows(page, "its members", () => region("Lineage").locator("tbody tr").count(), 10);
    await matches(page, "its classes", text(region("Schema")), /class[^]*0, 1, 2, 3, 4, 5, 6, 7, 8, 9/);
    await shows(page, "its inputs", () => region("Inputs").locator("tbody tr").count(), 32);
    await page.getByRole("button", { name: "Show version 3" }).click();
    await heading("Version 3").waitFor();
    await addressMatches(page, /models\/digits\?version=3/);
    await leave(page, () => page.reload());
    await heading("Version 3").waitFor();
    await shows(page, "where it comes from", attribute(region("Lineage").locator("a").first(), "href"), "#/sweeps/gone");
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    await visit("#/models/nothing");
    await heading("There is no model nothing").waitFor();
    browser.expect(/status of 404/);
  });

  await step("models: an alias moves, also by another's hand; a version without aliases is deleted", async () => {
    await openModel("digits", 2);
    await page.getByRole("button", { name: "Set an alias…" }).click();
    await page.getByLabel("Version", { exact: true }).selectOption("1");
    await page.getByRole("button", { name: "Set it" }).click();
    await heading("Version 1").waitFor(); // what the name alone means
    assert.equal(fixture.models.get("digits").aliases.champion, 1);
    await page.getByRole("button", { name: "Set an alias…" }).click();
    await page.getByLabel("Alias", { exact: true }).fill("7");
    browser.expect(/status of 400/);
    await page.getByRole("button", { name: "Set it" }).click();
    await page.getByRole("alert").getByText("'7' is not an alias").waitFor();
    await page.getByRole("button", { name: "Leave it" }).click();
    fixture.models.get("digits").aliases.champion = 3;
    fixture.emit("model.changed", { model: "digits" });
    await heading("Version 3").waitFor();
    await page.getByRole("button", { name: "Show version 2" }).click();
    await heading("Version 2").waitFor();
    await page.getByRole("button", { name: "Delete version…" }).click();
    await page.getByRole("button", { name: "Delete the version" }).click();
    await heading("Version 3").waitFor();
    await shows(page, "versions", () => region("Versions").locator("tbody tr").count(), 2);
    await page.getByRole("button", { name: "Remove candidate" }).click();
    await page.getByRole("button", { name: "Remove candidate" }).waitFor({ state: "detached" });
    assert.deepEqual(fixture.models.get("digits").aliases, { champion: 3 });
  });

  await step("a sweep that has ended and a completed trial are added to models", async () => {
    await openSweep("digits-mlp");
    await page.getByRole("button", { name: "Add to models…" }).click();
    await page.getByLabel("Model", { exact: true }).fill("bad name");
    browser.expect(/status of 400/);
    await page.getByRole("button", { name: "Add it" }).click();
    await page.getByRole("alert").getByText("is not the name of a model").waitFor();
    await page.getByLabel("Model", { exact: true }).fill("fresh");
    await page.getByRole("button", { name: "Add it" }).click();
    await leave(page, () => page.getByRole("link", { name: "version 1 of fresh" }).click());
    await heading("fresh").waitFor();
    await openTrial("digits-mlp", 12);
    await page.getByRole("button", { name: "Add to models…" }).click();
    await page.getByLabel("Model", { exact: true }).fill("fresh");
    await page.getByRole("button", { name: "Add it" }).click();
    await page.getByRole("link", { name: "version 2 of fresh" }).waitFor();
    const sent = fixture.requests.filter((r) => r.path === "/v1/models/fresh/versions" && r.method === "POST").map((r) => r.body);
    assert.deepEqual(sent, [{ sweep: "digits-mlp", use: "recommended" }, { sweep: "digits-mlp", trial: 12 }]);
    await openTrial("digits-mlp", 11); // it failed
    assert.equal(await page.getByRole("button", { name: "Add to models…" }).count(), 0);
    await visit("#/sweeps/empty"); // nothing has completed
    await heading("empty").waitFor();
    assert.equal(await page.getByRole("button", { name: "Add to models…" }).count(), 0);
  });

  await step("at 1,440 px no column of a table is cut; on a phone the page does not move sideways", async () => {
    const tables = () => page.locator(".rows").evaluateAll((boxes) => boxes.flatMap((box) => {
      const texts = [...box.querySelectorAll("thead th button span"), ...box.querySelectorAll("tbody tr:not(.gap) td")].filter((e) => e.cellIndex === undefined || box.querySelectorAll("thead th")[e.cellIndex]?.innerText.trim() !== "Reason");
      return [...(box.scrollWidth > box.clientWidth ? [`${box.ariaLabel}: ${box.scrollWidth} px in ${box.clientWidth}`] : []), ...texts.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => `${box.ariaLabel}: ${e.innerText}`)];
    }));
    const sideways = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await page.setViewportSize({ width: 1440, height: 900 });
    for (const id of ["digits-mlp", "tuned", "two", "three"]) {
      await openSweep(id);
      await frames(page);
      assert.deepEqual(await tables(), [], `what is cut in ${id}`);
    }
    for (const open of [openList, () => visit("#/models"), () => openModel("digits", 3)]) {
      await open();
      await frames(page);
      assert.deepEqual(await tables(), [], `what is cut in ${await hash()}`);
      assert.ok(await sideways() <= 0, `${await hash()} is wider than the screen`);
    }
    await page.setViewportSize({ width: 390, height: 844 });
    await openTrial("digits-mlp", 17);
    const top = async (name) => (await region(name).boundingBox()).y;
    const order = [await top("Parameters"), await top("Curves"), await top("Output"), await top("Why these parameters"), await top("Attempts"), await top("Artifacts")];
    assert.deepEqual(order, [...order].sort((a, b) => a - b), "curves come before files");
    assert.equal(await sideways(), 0);
    for (const open of [openList, () => openSweep("three"), () => visit("#/sweeps/nope"), () => visit("#/runners"), () => visit("#/models"), () => openModel("digits", 3)]) {
      await open();
      await frames(page);
      assert.ok(await sideways() <= 0, `${await hash()} is wider than the screen`);
    }
    await openSweep("digits-mlp");
    const box = page.locator(".rows").last();
    await box.evaluate((b) => { b.scrollLeft = 300; });
    await frames(page);
    assert.ok(await box.evaluate((b) => b.querySelector("tbody tr:not(.gap) td").getBoundingClientRect().left - b.getBoundingClientRect().left) < 2, "the trial's number stays in sight");
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  /** A sweep's page, with the panels that load only when visible. */
  const whole = (id, query) => async () => {
    const { base, view } = fixture.sweeps.get(id);
    await openSweep(id, query);
    if (base.metrics.length > 1) await inSight("Pareto", "the front", attribute(region("Pareto"), "data-front"), (n) => n !== "0");
    if (view.counts.completed > 0) await inSight("Importance", "importance", importanceRows, (rows) => rows.length > 0);
  };
  const views = {
    sweeps: { open: openList },
    "a sweep": { open: whole("digits-mlp") },
    "a trial": { open: () => openTrial("digits-mlp", 11) },
    predictions: { open: whole("tuned", "?predicted=show") },
    "an infeasible trial": { open: () => openTrial("tuned", 30) },
    "two objectives": { open: whole("two"), part: panelNamed("Pareto") },
    "three objectives": { open: whole("three") },
    "ask and tell": { open: whole("asked") },
    "early stopping": { open: () => openSweep("stopped"), part: panelNamed("Early stopping") },
    "slices with ranges": { open: whole("tuned", "?explore=slices&brush=%7B%22param:lr%22:%5B0.001,0.02%5D%7D"), part: panelNamed("Parameters of all trials") },
    "a trial with rungs": { open: () => openTrial("stopped", 9), part: panelNamed("Rungs") },
    models: {
      open: async () => {
        await visit("#/models");
        await shows(page, "rows", () => rowsOf(page, "Models"), fixture.models.size);
      },
    },
    "a model": { open: () => openModel("digits", 3) },
    "all output": {
      open: async () => {
        await openTrial("digits-mlp", 17);
        await page.getByRole("button", { name: /^Whole output/ }).click();
        await matches(page, "the last line", text(page.getByRole("dialog").locator(".log")), /the end$/);
      },
      part: DIALOG,
    },
    "a preview": {
      open: async () => {
        await visit("#/runners");
        await openTrial("digits-mlp", 17);
        await page.getByRole("button", { name: "View rows.csv" }).click();
        await matches(page, "the rows", text(page.getByRole("dialog")), /The first 200 rows/);
      },
      part: DIALOG,
    },
    runners: {
      open: async () => {
        await visit("#/runners");
        await shows(page, "rows", () => rowsOf(page, "Runners"), 2);
      },
    },
  };
  await step("no violation of accessibility rules", () => accessible(browser, views));

  await step("a token that is no longer good brings the login form", async () => {
    await page.evaluate(() => localStorage.setItem("assay.token", "revoked"));
    await leave(page, () => page.reload());
    await heading("Sign in").waitFor();
    await matches(page, "the refusal", text(page.getByRole("alert")), /not known/);
  });

  await step("a server that is gone is said, and what was shown stays", async () => {
    await visit(`#token=${TOKEN}&to=/sweeps/digits-mlp`);
    await loaded("digits-mlp");
    await page.getByText("Live", { exact: true }).waitFor();
    fixture.close();
    await page.getByText("Connection lost, trying again…").waitFor();
    assert.equal(await chartPoints(), pointsIn("digits-mlp"));
  });

  await step("the fixture answered as the OpenAPI document says", async () => {
    const check = checker();
    assert.deepEqual(fixture.seen.flatMap(([method, path, body]) => check(method, path, body)).slice(0, 10), []);
    assert.ok(fixture.seen.length > 50);
  });

  assert.deepEqual(errors, [], "the console stayed clean, and nothing broke the content security policy");
} finally {
  fixture.close();
  await browser.close();
}
