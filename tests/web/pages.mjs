/* The built page in Chromium against the fixture: every view, its states, and what a real sweep is too small
 * or too well-behaved to show. tests/web/live.mjs does the whole thing with real programs. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { column, DIST, openBrowser, orderBy, SOURCE, step, tools, until } from "./browser.mjs";
import { startFixture, TOKEN } from "./fixture.mjs";
import { checker } from "./schema.mjs";

const browser = await openBrowser();
const { page, errors } = browser;
const fixture = await startFixture(DIST);
const axe = readFileSync(tools().resolve("axe-core/axe.min.js"), "utf8");
const visit = (hash) => page.goto(`${fixture.url}/${hash}`);
const text = (selector) => page.locator(selector).first().innerText();
const chartPoints = () => page.getByRole("region", { name: "History" }).getAttribute("data-points").then(Number);
const completedIn = (id) => fixture.sweeps.get(id).trials.filter((t) => t.state === "completed").length;
const numbersOf = (cells) => cells.map((c) => (c === "–" ? null : c === "∞" ? Infinity : Number(c)));

/** Numbers in order, and those without a value after them. */
function assertOrdered(cells, descending) {
  const values = numbersOf(cells);
  const known = values.filter((v) => v !== null);
  assert.ok(values.slice(known.length).every((v) => v === null), `trials without a value come last: ${cells}`);
  assert.deepEqual(known, [...known].sort((a, b) => (descending ? b - a : a - b)));
}

try {
  await step("without a token, the login form; a wrong token is refused in words", async () => {
    browser.expect(/status of 401/);
    await visit("#/sweeps/digits-mlp");
    await page.getByLabel("Token", { exact: true }).fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    assert.match(await page.getByRole("alert").innerText(), /not known/);
  });

  await step("the right token opens the view that was asked for", async () => {
    await page.getByLabel("Token", { exact: true }).fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "digits-mlp" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length), 0);
  });

  await step("a token in the address signs in and leaves the address", async () => {
    await visit(`#token=${TOKEN}&to=/sweeps/digits-mlp`);
    await page.getByRole("heading", { name: "digits-mlp" }).waitFor();
    assert.equal(new URL(page.url()).hash, "#/sweeps/digits-mlp");
    await visit(`#token=${TOKEN}`);
    await page.getByRole("heading", { name: "Sweeps" }).waitFor();
    assert.equal(new URL(page.url()).hash, "#/sweeps");
  });

  await step("the list: every sweep, filtered and ordered by its address", async () => {
    await until(page, "rows", () => column(page, "Sweeps", "Sweep"), (c) => c.length === 9);
    assert.deepEqual(await column(page, "Sweeps", "Sweep"), ["empty", "live", "nasty", "digits-mlp", "tuned", "two", "three", "asked", "big"]);
    await page.getByRole("button", { name: "completed 5" }).click();
    await orderBy(page, "Sweeps", "Best");
    const ordered = ["digits-mlp", "tuned", "two", "three", "big"].sort((a, b) => fixture.sweeps.get(a).view.best.value - fixture.sweeps.get(b).view.best.value);
    assert.deepEqual(await column(page, "Sweeps", "Sweep"), ordered);
    await page.reload();
    await until(page, "rows after a reload", () => column(page, "Sweeps", "Sweep"), (c) => c.join() === ordered.join());
    await page.getByLabel("Find sweeps by name").fill("digi");
    assert.deepEqual(await column(page, "Sweeps", "Sweep"), ["digits-mlp"]);
    assert.match(page.url(), /state=completed.*find=digi|find=digi.*state=completed/);
  });

  await step("a sweep: as many points as completed trials, the best, the ensemble with its note", async () => {
    await page.getByRole("link", { name: "digits-mlp" }).click();
    await until(page, "points", chartPoints, (n) => n === completedIn("digits-mlp"));
    const best = fixture.sweeps.get("digits-mlp").view.best;
    assert.equal(Number(await page.getByTestId("best").getAttribute("title")), best.value);
    const panel = page.getByRole("region", { name: "Ensemble", exact: true });
    assert.match(await panel.innerText(), /0\.01487/);
    assert.match(await panel.innerText(), /different halves of the held-out rows.*270 rows.*269/s);
    assert.equal(await panel.locator("tbody tr").count(), 6);
    await page.getByText("Sweep document").click();
    assert.match(await page.locator(".document pre").innerText(), /^name: digits-mlp\n[^]*lr: \{type: float, min: 0.0001, max: 0.3, scale: log\}/);
  });

  await step("the chart: logarithmic, with the values beyond its scale; a click opens a trial", async () => {
    const history = page.getByRole("region", { name: "History" });
    await history.getByText("1 off the scale").waitFor();
    await history.getByLabel("Show all values").check();
    await history.getByLabel("Log scale").check();
    assert.match(page.url(), /far=show&y=log/);
    await history.getByText("1 off the scale").waitFor({ state: "detached" });
    const over = history.locator(".u-over");
    const box = await over.boundingBox();
    await over.hover({ position: { x: box.width / 2, y: 40 } });
    assert.match(await history.locator(".tip .head").innerText(), /#(19|20) completed/);
    await over.click({ position: { x: box.width / 2, y: 40 } });
    await page.getByRole("heading", { name: /^#(19|20)$/ }).waitFor();
    await page.goBack();
    await history.getByLabel("Log scale").uncheck();
  });

  await step("trials in order of value both ways, those without one last; by state", async () => {
    await orderBy(page, "Trials", "val_error");
    assertOrdered(await column(page, "Trials", "val_error"), false);
    await orderBy(page, "Trials", "val_error");
    assertOrdered(await column(page, "Trials", "val_error"), true);
    assert.match(page.url(), /sort=value&order=desc/);
    await page.getByRole("button", { name: "failed 2" }).click();
    assert.deepEqual(await column(page, "Trials", "State"), ["failed", "failed"]);
    await page.getByRole("button", { name: "All 40" }).click();
    await orderBy(page, "Trials", "momentum");
    const momentum = await column(page, "Trials", "momentum");
    assert.ok(momentum.findIndex((m) => m === "") > 0, "inactive parameters come last");
  });

  await step("groups: which trials trained in one process; only those of one", async () => {
    const groups = await column(page, "Trials", "Group");
    assert.ok(new Set(groups).size > 3 && groups.includes("g16.1"), String(groups));
    await page.getByRole("link", { name: "g16.1" }).first().click();
    await until(page, "the group", () => column(page, "Trials", "Trial"), (c) => c.length === 7);
    assert.deepEqual([...await column(page, "Trials", "Trial")].map(Number).sort((a, b) => a - b), [16, 18, 19, 20, 21, 22, 23]);
    assert.match(page.url(), /group=digits-mlp\.g16\.1/);
    await page.getByRole("link", { name: "18", exact: true }).click();
    await page.getByRole("heading", { name: "#18", exact: true }).waitFor(); // the table has links to the group, too
    await page.getByText("Shape: digits; mlp up to 91 42").waitFor();
    assert.match(await page.getByRole("region", { name: "Attempts" }).innerText(), /box-\d g16\.1/);
    await page.getByRole("link", { name: "g16.1" }).first().click();
    await page.getByRole("button", { name: "Group g16.1" }).click();
    await until(page, "all of them", () => column(page, "Trials", "Trial"), (c) => c.length > 30);
    await visit("#/sweeps/tuned");
    await page.getByRole("region", { name: "Trials", exact: true }).waitFor();
    assert.equal(await page.getByRole("columnheader", { name: "Group" }).count(), 0);
  });

  await step("live: what happens is shown without a reload", async () => {
    await visit("#/sweeps/live");
    await until(page, "points", chartPoints, (n) => n === completedIn("live"));
    await page.evaluate(() => { window.sameDocument = true; });
    for (let i = 0; i < 3; i++) fixture.finish("live");
    const winner = fixture.finish("live", 0.001);
    await until(page, "points", chartPoints, (n) => n === completedIn("live"));
    await until(page, "best", () => text("[data-testid=best]"), (t) => t === "0.001");
    await page.getByRole("link", { name: `#${winner.number}`, exact: true }).waitFor();
    const running = fixture.sweeps.get("live").trials.find((t) => t.state === "running");
    running.value = 0.4321;
    fixture.emit("trial.measured", { sweep: "live", number: running.number, attempt: 1, value: 0.4321 });
    await page.getByRole("region", { name: "Trials" }).getByText("0.4321").waitFor();
    assert.equal(await page.evaluate(() => window.sameDocument), true);
  });

  await step("live: a burst of events is one reload, not one each", async () => {
    const asked = () => fixture.seen.filter(([, at]) => at === "/v1/sweeps/{sweep}/trials/{number}" || at === "/v1/sweeps/{sweep}").length;
    const before = asked();
    for (let i = 0; i < 200; i++) fixture.emit("trial.changed", { sweep: "live", number: 0, state: "completed", attempt: 1 });
    fixture.finish("live");
    await until(page, "points", chartPoints, (n) => n === completedIn("live"));
    assert.ok(asked() - before < 40, `200 events made ${asked() - before} requests`);
  });

  await step("live: a cut stream is taken up again where it ended", async () => {
    browser.expect(/ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION|ERR_EMPTY_RESPONSE/);
    fixture.cut();
    fixture.finish("live");
    await until(page, "points", chartPoints, (n) => n === completedIn("live"));
    await page.getByText("Live", { exact: true }).waitFor();
  });

  await step("pause, resume and cancel; cancelling asks first", async () => {
    const state = () => fixture.sweeps.get("live").base.state;
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    assert.equal(state(), "paused");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Keep it" }).click();
    assert.equal(state(), "running");
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel the sweep" }).click();
    await page.locator(".head .state-cancelled").waitFor();
    assert.equal(await page.getByRole("button", { name: "Cancel…" }).count(), 0);
  });

  await step("5,000 trials: few rows are made, the last is reached, the order is right", async () => {
    await visit("#/sweeps/big?sort=value");
    await until(page, "points", chartPoints, (n) => n === completedIn("big"));
    const region = page.getByRole("region", { name: "Trials", exact: true });
    assert.equal(await region.locator("table").getAttribute("aria-rowcount"), "5001");
    assert.ok((await region.locator("tbody tr").count()) < 120);
    assertOrdered(await column(page, "Trials", "val_error"), false);
    await region.evaluate((r) => r.scrollTo(0, r.scrollHeight));
    const failed = fixture.sweeps.get("big").trials.filter((t) => t.state === "failed").map((t) => String(t.number));
    await until(page, "the last rows", () => column(page, "Trials", "Trial"), (c) => c.at(-1) === failed.at(-1));
    assert.ok((await region.locator("tbody tr").count()) < 120);
    const moved = await region.evaluate(async (r) => {
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
    const history = page.getByRole("region", { name: "History" });
    const drawn = () => history.locator("canvas").evaluate((c) => { let n = 0; const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height); for (let i = 3; i < data.length; i += 4) n += data[i] > 0 ? 1 : 0; return n; });
    const before = await drawn();
    await history.getByLabel("Predictions").check();
    assert.match(page.url(), /predicted=show/);
    await until(page, "whiskers", drawn, (n) => n > before);
    await history.getByText("predicted", { exact: true }).waitFor();
    await history.getByLabel("Predictions").uncheck();
    await until(page, "no whiskers", drawn, (n) => n === before);
  });

  await step("importance: total, alone and interval of each parameter; the reason where there are none", async () => {
    await visit("#/sweeps/tuned");
    const panel = page.getByRole("region", { name: "Importance", exact: true });
    await panel.scrollIntoViewIfNeeded();
    await panel.locator("tbody tr").first().waitFor();
    const { parameters, r2, trials } = fixture.sweeps.get("tuned").importance();
    assert.deepEqual(await panel.locator("tbody tr").evaluateAll((rows) => rows.map((r) => [...r.children].map((c) => c.innerText.trim()))),
      parameters.map((p) => [p.name === "momentum" ? "momentum *" : p.name, "", p.total.toFixed(2), `${p.total_low.toFixed(2)}–${p.total_high.toFixed(2)}`, p.first.toFixed(2)]));
    assert.equal(await panel.getByTestId("r2").innerText(), r2.toFixed(2));
    assert.match(await panel.innerText(), new RegExp(`${trials} trials[^]*where the parameter is active`));
    const at = await panel.locator(".share").first().evaluate((bar) => { const all = bar.getBoundingClientRect(); return Object.fromEntries([...bar.children].map((c) => { const b = c.getBoundingClientRect(); return [c.className, [b.left, b.right].map((x) => Math.round((100 * (x - all.left)) / all.width))]; })); });
    assert.deepEqual(at, { total: [0, 80], alone: [0, 56], range: [68, 100] });
    const young = fixture.sweeps.get("nasty");
    await visit("#/sweeps/nasty");
    await panel.scrollIntoViewIfNeeded();
    await panel.getByText(`Not told: ${young.importance().reason}.`).waitFor();
  });

  await step("importance is asked for when it is seen, and at most every few seconds", async () => {
    const asked = () => fixture.seen.filter(([, at]) => at.endsWith("/importance")).length;
    await page.setViewportSize({ width: 1440, height: 320 });
    const before = asked();
    await visit("#/sweeps/live");
    const sweep = fixture.sweeps.get("live");
    await until(page, "points", chartPoints, (n) => n === completedIn("live"));
    const late = sweep.add("completed");
    fixture.emit("trial.changed", { sweep: "live", number: late.number, state: "completed", attempt: 1 });
    await until(page, "points", chartPoints, (n) => n === completedIn("live"));
    assert.equal(asked(), before, "not while it is below the fold");
    const panel = page.getByRole("region", { name: "Importance", exact: true });
    await panel.scrollIntoViewIfNeeded();
    await panel.getByText(`${completedIn("live")} trials`).waitFor();
    assert.equal(asked(), before + 1);
    for (let i = 0; i < 10; i++) {
      const t = sweep.add("completed");
      fixture.emit("trial.changed", { sweep: "live", number: t.number, state: "completed", attempt: 1 });
      await until(page, "points", chartPoints, (n) => n === completedIn("live"));
    }
    await panel.getByText(`${completedIn("live")} trials`).waitFor();
    assert.ok(asked() <= before + 4, `ten results one after the other made ${asked() - before} requests`);
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  await step("infeasible trials are marked, and none is the best; where parameters come from", async () => {
    await visit("#/sweeps/tuned?sort=value");
    const { best } = fixture.sweeps.get("tuned").view;
    await until(page, "points", chartPoints, (n) => n === completedIn("tuned"));
    assert.equal(Number(await page.getByTestId("best").getAttribute("title")), best.value);
    assert.ok(best.value > 0.001 && best.number !== 30);
    assert.match(await page.getByRole("region", { name: "History" }).locator("[role=img]").getAttribute("aria-label"), new RegExp(`trial ${best.number}\\.`));
    await page.getByRole("region", { name: "History" }).locator(".legend").getByText("infeasible").waitFor();
    assert.equal((await column(page, "Trials", "Trial"))[0], "30", "it has the lowest value all the same");
    assert.equal((await column(page, "Trials", "Feasible"))[0], "no");
    assert.equal((await column(page, "Trials", "latency_ms"))[0], "21.5");
    assert.match(await text(".facts"), /latency_ms <= 16/);
    await orderBy(page, "Trials", "Origin");
    const origins = await column(page, "Trials", "Origin");
    assert.deepEqual(origins.slice(0, 3), ["enqueued", "known", "suggested"]);
    await visit("#/sweeps/tuned/trials/30");
    await page.locator(".head .state-infeasible").waitFor();
    assert.match(await page.getByRole("region", { name: "Metrics" }).innerText(), /latency_ms <= 16\s+21\.5 \(broken\)/);
    await visit("#/sweeps/tuned/trials/0");
    await page.getByText("A known result, added by hand.").waitFor();
  });

  await step("why these parameters: in words, with what was foretold and what came", async () => {
    const trial = fixture.sweeps.get("tuned").trials.find((t) => t.number >= 20 && t.state === "completed" && t.suggestion.acquisition === "ucb");
    const { predicted, incumbent, observed } = trial.suggestion;
    await visit(`#/sweeps/tuned/trials/${trial.number}`);
    const why = page.getByRole("region", { name: "Why these parameters" });
    const words = await why.getByTestId("why").innerText();
    assert.match(words, new RegExp(`^Chosen by upper confidence bound: predicted [0-9.]+ ± [0-9.]+.*; the best so far was trial ${incumbent.number} with [0-9.]+; ${observed} results seen`));
    assert.equal(Number(await why.getByTestId("came").getAttribute("title")), trial.value);
    const off = Math.abs(trial.value - predicted.mean) / predicted.deviation;
    const said = /([0-9.]+) deviations (above|below)/.exec(await why.innerText());
    assert.ok(said ? Math.abs(Number(said[1]) - off) < 0.06 * off && (said[2] === "above") === trial.value > predicted.mean : off < 0.05, `${off}: ${said}`);
    await why.getByRole("link", { name: `#${incumbent.number}` }).click();
    await page.getByRole("heading", { name: `#${incumbent.number}` }).waitFor();
    await visit("#/sweeps/two/trials/20");
    await until(page, "two predictions", () => why.locator("figure").count(), (n) => n === 2);
    assert.match(await why.getByTestId("why").innerText(), /^Chosen by expected hypervolume improvement: predicted val_error .* ± .*, latency_ms .* ± /);
  });

  await step("the front of two objectives: its trials, its volume; a click opens the trial", async () => {
    await visit("#/sweeps/two");
    const panel = page.getByRole("region", { name: "Pareto", exact: true });
    const { items } = fixture.sweeps.get("two").pareto();
    await until(page, "the front", () => panel.getAttribute("data-front"), (n) => n === String(items.length));
    assert.equal(await panel.getByTestId("hypervolume").innerText(), "12.35");
    const shown = await panel.locator("tbody a").allInnerTexts();
    assert.deepEqual(shown, [...items].sort((a, b) => a.value - b.value).map((t) => `#${t.number}`));
    assert.match(await panel.locator("[role=img]").getAttribute("aria-label"), new RegExp(`${items.length} of them on the front`));
    const over = panel.locator(".u-over");
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    let found = false; // somewhere on a grid finer than the reach of the pointer lies a point of the front
    for (let x = 10; x < box.width && !found; x += 16)
      for (let y = 10; y < box.height && !found; y += 16) {
        await page.mouse.move(box.x + x, box.y + y);
        found = /on the front/.test(await panel.locator(".tip").innerText());
        if (found) await page.mouse.click(box.x + x, box.y + y);
      }
    await page.getByRole("heading", { name: /^#\d+$/ }).waitFor();
    assert.ok(items.some((t) => page.url().endsWith(`/two/trials/${t.number}`)), page.url());
  });

  await step("three objectives: any two of them are the axes, and the address says which", async () => {
    await visit("#/sweeps/three");
    const panel = page.getByRole("region", { name: "Pareto", exact: true });
    const label = () => panel.locator("[role=img]").getAttribute("aria-label");
    const { items } = fixture.sweeps.get("three").pareto();
    await until(page, "the front", label, (l) => l.startsWith("latency_ms (minimize) against val_error (minimize) of 30 ") && l.includes(` ${items.length} of them`));
    await panel.getByLabel("Across").selectOption("depth");
    assert.match(await label(), /^val_error \(minimize\) against depth \(maximize\)/);
    await panel.getByLabel("Up").focus();
    await page.keyboard.press("ArrowDown");
    await until(page, "the other axis", label, (l) => l.startsWith("latency_ms (minimize) against depth"));
    assert.match(page.url(), /px=depth&py=latency_ms/);
    await panel.getByText("infeasible").waitFor();
    assert.ok(items.every((t) => t.feasible));
  });

  await step("a sweep that runners leave alone says so, and how to ask", async () => {
    await browser.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await visit("#/sweeps/asked");
    const panel = page.getByRole("region", { name: "Ask and tell" });
    await panel.getByText("Runners leave this sweep alone").waitFor();
    const lines = (await panel.locator("pre").innerText()).split("\n");
    assert.equal(lines.length, 3);
    assert.ok(lines[0].endsWith(`U='${fixture.url}/v1/sweeps/asked/suggestions'`), lines[0]);
    await panel.getByRole("button", { name: "Copy" }).click();
    await until(page, "the clipboard", () => page.evaluate(() => navigator.clipboard.readText()), (t) => t === lines.join("\n"));
    await visit("#/sweeps/live");
    await page.getByRole("region", { name: "Trials", exact: true }).waitFor();
    assert.equal(await panel.count(), 0);
  });

  await step("a trial: parameters, attempts, curves, output, files", async () => {
    await visit("#/sweeps/digits-mlp/trials/17");
    const curves = page.getByRole("region", { name: "Curves" });
    await until(page, "metrics", () => curves.getAttribute("data-metrics"), (n) => n === "5");
    assert.equal(await curves.locator("figure").count(), 4, "train_loss and val_loss share a chart");
    await curves.getByLabel("Log scale").check();
    assert.match(page.url(), /y=log/);
    assert.match(await text(".log"), /epoch 20\/20/);
    assert.match(await page.getByRole("region", { name: "Attempts" }).innerText(), /lost[^]*completed/);
    const waiting = page.waitForEvent("download");
    await page.getByRole("button", { name: "model.safetensors" }).click();
    const download = await waiting;
    assert.equal(download.suggestedFilename(), "model.safetensors");
    assert.equal(readFileSync(await download.path(), "utf8"), "not really a model\n");
    await page.getByTitle("Trial after this one").click();
    await page.getByRole("heading", { name: "#18" }).waitFor();
    await visit("#/sweeps/digits-mlp/trials/11");
    await curves.getByText(/^val_error NaN$/).waitFor(); // it ended in NaN, whatever can be drawn before
  });

  await step("hostile names, reasons and output are text, and nothing else", async () => {
    browser.expect(/status of 404/);
    for (const hash of ["#/sweeps", "#/sweeps/nasty", "#/sweeps/nasty/trials/0", "#/sweeps/nasty/trials/2", "#/sweeps/<img%20src=x%20onerror=window.pwned=1>"]) {
      await visit(hash);
      await page.locator("main").waitFor();
      await until(page, "the view", () => text("main"), (t) => t.includes("<img") || t.includes("no sweep") || (hash === "#/sweeps" && t.includes("__proto__")));
      assert.equal(await page.evaluate(() => document.querySelectorAll("main img, main script").length), 0);
    }
    await page.locator("canvas").first().waitFor({ state: "detached" });
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  });

  await step("what is not there, is not yet there, and is a wrong address, is said", async () => {
    await visit("#/sweeps/nope");
    await page.getByText("there is no sweep nope").waitFor();
    await visit("#/nowhere");
    await page.getByText("There is no such page").waitFor();
    await visit("#/sweeps/empty");
    await page.getByText("No trials yet: they appear").waitFor();
    await visit("#/runners");
    await page.getByText("1 live, 2 of 4 slots busy").waitFor();
  });

  for (const colorScheme of ["light", "dark"]) {
    await step(`no violation of accessibility rules (${colorScheme})`, async () => {
      await page.emulateMedia({ colorScheme });
      for (const hash of ["#/sweeps", "#/sweeps/digits-mlp", "#/sweeps/digits-mlp/trials/11", "#/sweeps/tuned?predicted=show", "#/sweeps/tuned/trials/30", "#/sweeps/two", "#/sweeps/three", "#/sweeps/asked", "#/runners"]) {
        await visit(hash);
        await page.locator("main .panel").first().waitFor();
        const importance = page.getByRole("region", { name: "Importance", exact: true });
        if (await importance.count()) await importance.scrollIntoViewIfNeeded();
        const loading = page.getByText("Loading…");
        while (await loading.count()) await loading.first().waitFor({ state: "detached" });
        // Not a script element, which the page's policy forbids: the debugger puts it in.
        await page.evaluate(axe);
        const found = await page.evaluate(() => window.axe.run(document, { rules: { "page-has-heading-one": { enabled: true } } }));
        assert.deepEqual(found.violations.map((v) => `${hash} ${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" ")}`), []);
      }
    });
  }

  await step("a token that is no longer good brings the login form", async () => {
    await page.evaluate(() => localStorage.setItem("assay.token", "revoked"));
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    assert.match(await page.getByRole("alert").innerText(), /not known/);
  });

  await step("a server that is gone is said, and what was shown stays", async () => {
    await visit(`#token=${TOKEN}&to=/sweeps/digits-mlp`);
    await until(page, "points", chartPoints, (n) => n === completedIn("digits-mlp"));
    fixture.close();
    await page.getByText("Connection lost, trying again…").waitFor();
    assert.equal(await chartPoints(), completedIn("digits-mlp"));
  });

  await step("the fixture answered as the OpenAPI document says", async () => {
    const check = checker(join(SOURCE, "api/openapi.yaml"), tools()("yaml").parse);
    assert.deepEqual(fixture.seen.flatMap(([method, path, body]) => check(method, path, body)).slice(0, 10), []);
    assert.ok(fixture.seen.length > 50);
  });

  assert.deepEqual(errors, [], "the console stayed clean, and nothing broke the content security policy");
} finally {
  fixture.close();
  await browser.close();
}
