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
    await until(page, "rows", () => column(page, "Sweeps", "Sweep"), (c) => c.length === 5);
    assert.deepEqual(await column(page, "Sweeps", "Sweep"), ["empty", "live", "nasty", "digits-mlp", "big"]);
    await page.getByRole("button", { name: "completed 2" }).click();
    await orderBy(page, "Sweeps", "Best");
    assert.deepEqual(await column(page, "Sweeps", "Sweep"), ["big", "digits-mlp"]);
    await page.reload();
    await until(page, "rows after a reload", () => column(page, "Sweeps", "Sweep"), (c) => c.join() === "big,digits-mlp");
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
      await until(page, "the view", () => text("main"), (t) => t.includes("<img") || t.includes("no sweep"));
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
      for (const hash of ["#/sweeps", "#/sweeps/digits-mlp", "#/sweeps/digits-mlp/trials/11", "#/runners"]) {
        await visit(hash);
        await page.locator("main .panel").first().waitFor();
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
