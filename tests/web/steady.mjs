/* The page stays where it is while it loads and while trials come: how far its parts move
 * (layout shift, as Chromium measures it), whether a click reaches what was pressed when news
 * come between press and release, and whether the focus stays. The fixture holds answers and
 * sends events at these moments, so that no step depends on time. */
import assert from "node:assert/strict";
import { DIST, frames, openBrowser, rowsOf, shows, step, until, untilInSight } from "./browser.mjs";
import { startFixture, TOKEN } from "./fixture.mjs";
import { viewsOf } from "./views.mjs";

const SHIFT_MOST = 0.1; // "good" by https://web.dev/articles/cls
const SIZES = { wide: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
const TRIALS = 2000;
const MORE = 20; // trials that come at once
const SETTLED_FRAMES = 20;  // what was loaded is drawn, one piece a frame
const ANSWERED_FRAMES = 30; // an answer is shown by then, if nothing holds it
const RESTED_FRAMES = 300;  // … and so is what waits for its turn, most of the time

const browser = await openBrowser();
const { page, errors } = browser;
const fixture = await startFixture(DIST);
const { visit, visitAnew, region } = viewsOf(page, fixture);
const button = (name) => page.getByRole("button", { name, exact: true });

/** A running sweep of so many trials, without a failed one. */
function makeRunning(id, n) {
  const sweep = fixture.invent(id, 8);
  delete sweep.invented;
  delete sweep.counts;
  for (let i = 0; i < n; i++) sweep.add("completed");
  for (let i = 0; i < 4; i++) sweep.add("running");
  sweep.base.planned_trials = 2 * n + 1000;
  return sweep;
}

/** The oldest running trial fails. */
function fail(id) {
  const sweep = fixture.sweeps.get(id);
  const t = sweep.trials.find((x) => x.state === "running");
  sweep.end(t, "failed", null, Date.now());
  fixture.emit("trial.changed", { sweep: id, number: t.number, state: "failed", attempt: 1 });
}

function finishAll(id) {
  const sweep = fixture.sweeps.get(id);
  for (const t of sweep.trials.filter((x) => x.state === "running")) sweep.end(t, "completed", 0.5, Date.now());
  Object.assign(sweep.base, { state: "completed", finished_at: new Date().toISOString(), reason: "every trial has ended" });
  fixture.emit("sweep.changed", { sweep: id, state: "completed" });
}

/** In the page: the layout shifts, and what was pressed and clicked. */
function watch() {
  window.shifts = [];
  const placeOf = (node) => (node?.nodeType === 1 ? node : node?.parentElement)?.closest("[aria-label], .head, .facts, main > *")?.getAttribute("aria-label") ?? node?.className ?? "";
  new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries()) window.shifts.push({ value, of: [...new Set(sources.map((s) => placeOf(s.node)))].join(", ") });
  }).observe({ type: "layout-shift", buffered: true });
}

/** The sum of the shifts since the last call, of whatever cause, and the largest ones. */
async function shifted(name) {
  await frames(page);
  const all = await page.evaluate(() => window.shifts.splice(0));
  const sum = all.reduce((n, s) => n + s.value, 0);
  const largest = all.sort((a, b) => b.value - a.value).slice(0, 2).filter((s) => s.value > 0.005);
  console.log(`  ${sum.toFixed(4)} ${name}${largest.map((s) => `; ${s.value.toFixed(4)} ${s.of}`).join("")}`);
  return sum;
}

/** Until nothing in the window loads. */
const calm = () => until(page, "what loads in sight", () => page.getByText(/^(Loading|Reading the values)…$/).evaluateAll((all) => all.filter((e) => { const b = e.getBoundingClientRect(); return b.bottom > 0 && b.top < innerHeight; }).length), (n) => n === 0);

/** So many trials of the sweep complete, and others begin, which the page has shown then. */
async function run(id, n) {
  const { trials } = fixture.sweeps.get(id);
  for (let i = 0; i < n; i++) fixture.finish(id);
  await shows(page, "rows", () => rowsOf(page, "Trials"), trials.length);
  await frames(page, 4);
}

/** Press an element, let an answer come that the page has asked for after `news`, and release.
 * What was clicked, as text. */
async function pressDuring(locator, path, news, { hold = () => page.mouse.down(), release = () => page.mouse.up(), last = ANSWERED_FRAMES } = {}) {
  const answer = fixture.hold("GET", path);
  await news();
  await answer.arrived;
  await locator.scrollIntoViewIfNeeded();
  await frames(page, SETTLED_FRAMES);
  const { x, y, width, height } = await locator.boundingBox();
  await page.mouse.move(x + Math.min(width / 2, 200), y + height / 2);
  await locator.evaluate((element) => {
    window.clicks = [];
    addEventListener("click", (e) => window.clicks.push(element === e.target || element.contains(e.target) ? "what was pressed" : e.target.outerHTML.slice(0, 80)), { capture: true, once: true });
  });
  await hold();
  answer.release();
  await frames(page, last);
  await release();
  await frames(page);
  return page.evaluate(() => window.clicks);
}

const HIT = ["what was pressed"];
const live = fixture.sweeps.get("live");
const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent);
const placesOfButtons = () => page.locator(".head .acts").evaluate((acts) => Object.fromEntries([...acts.querySelectorAll("button, a")].map((b) => [b.textContent, b.getBoundingClientRect().left])));
const parts = ["History", "Importance", "Curves of all trials", "Parameters of all trials", "Timeline", "All trials", "Remarks"];

/** Each view, by how it is opened, and what it does while it is looked at. */
const views = {
  "the list of sweeps": { open: () => visitAnew("#/sweeps") },
  "a sweep of 2,000 trials": { open: async () => { await visitAnew("#/sweeps/many"); await loadedMany(); }, live: () => run("many", MORE), parts, busy: ["Importance", "All trials"] },
  "a sweep that begins": { open: () => visitAnew("#/sweeps/begins2"), live: () => run("begins2", 3), parts, busy: ["History", "Timeline"] },
  "a sweep that has ended": { open: () => visitAnew("#/sweeps/digits-mlp"), parts: ["Ensemble"] },
  "a search with a model": { open: () => visitAnew("#/sweeps/tuned") },
  "two objectives": { open: () => visitAnew("#/sweeps/two"), parts: ["Pareto", "Timeline"] },
  "early stopping": { open: () => visitAnew("#/sweeps/stopped"), parts: ["Early stopping", "All trials"] },
  "no trials": { open: () => visitAnew("#/sweeps/empty") },
  "ask and tell": { open: () => visitAnew("#/sweeps/asked") },
  "a trial": { open: () => visitAnew("#/sweeps/digits-mlp/trials/17") },
  "a trial that runs": { open: () => visitAnew(`#/sweeps/live/trials/${live.trials.find((t) => t.state === "running").number}`) },
  "a trial of four ranks": { open: () => visitAnew("#/sweeps/digits-mlp/trials/38") },
  "runners": { open: () => visitAnew("#/runners") },
  "models": { open: () => visitAnew("#/models") },
  "data sets": { open: () => visitAnew("#/data") },
  "a table": { open: () => visitAnew("#/data/people") },
  "images": { open: () => visitAnew("#/data/digits") },
  "sweeps side by side": { open: () => visitAnew("#/compare?sweeps=digits-mlp,tuned") },
  "trials side by side": { open: () => visitAnew("#/compare/trials?of=digits-mlp:3-6") },
  "a new sweep": { open: () => visitAnew("#/new?from=digits-mlp") },
};

const loadedMany = () => shows(page, "rows", () => rowsOf(page, "Trials"), fixture.sweeps.get("many").trials.length);

/** The layout shift of one view: while it opens, while each of its parts comes in sight, and
 * while trials come. */
async function shiftOf({ open, live, parts: names = [], busy = [] }, name) {
  let most = 0;
  const note = async (when) => { most = Math.max(most, await shifted(`${name}, ${when}`)); };
  await open();
  await calm();
  await frames(page, SETTLED_FRAMES);
  await note("as it opens");
  for (const part of names) {
    await region(part).evaluate((r) => r.scrollIntoView({ block: "start" }));
    await calm();
    await frames(page, SETTLED_FRAMES);
    if (busy.includes(part)) await live();
    await note(part);
  }
  return most;
}

try {
  await browser.context.addInitScript(watch);
  await visit(`#token=${TOKEN}`);
  makeRunning("many", TRIALS);
  makeRunning("begins", 2);
  makeRunning("begins2", 12);

  await step("a button of a sweep that is pressed while the first trial fails, or while the sweep ends, is what is clicked", async () => {
    await visitAnew("#/sweeps/begins");
    await region("Timeline").waitFor();
    assert.deepEqual(await pressDuring(button("Pause"), "/v1/sweeps/begins", () => fail("begins")), HIT);
    await button("Resume").waitFor(); // so it was heard
    await button("Retry failed…").waitFor();
    await button("Resume").click();
    await button("Pause").waitFor();
    const before = await placesOfButtons();
    assert.deepEqual(await pressDuring(button("Cancel…"), "/v1/sweeps/begins", () => finishAll("begins")), HIT);
    await button("Keep it").click();
    await page.locator(".head .state-completed").waitFor();
    const after = await placesOfButtons();
    for (const name of ["Compare", "Clone", "Limits…", "Retry failed…"]) assert.equal(after[name], before[name], `${name} stays at its place`);
  });

  await step("the row of a trial that is pressed while others come above it is the one that opens", async () => {
    await visitAnew("#/sweeps/live?sort=number&order=desc");
    await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === live.trials.length);
    const row = region("Trials").locator("tbody tr.opens").nth(4);
    const number = (await row.locator("td").first().innerText()).trim();
    assert.deepEqual(await pressDuring(row, "/v1/sweeps/live/table", () => { for (let i = 0; i < 3; i++) fixture.finish("live"); }), HIT);
    await page.getByRole("heading", { name: `#${number}`, exact: true }).waitFor();
  });

  await step("the same of more than 3,000 trials, where rows are made for places", async () => {
    browser.expect(/status of 404/); // only their table has them
    fixture.invent("places", 3100, 100);
    await visitAnew("#/sweeps/places?sort=number&order=desc");
    await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === 3100);
    const row = region("Trials").locator("tbody tr.opens").nth(4);
    await until(page, "the newest first", () => row.locator("td").first().innerText(), (n) => Number(n) === 3095);
    assert.deepEqual(await pressDuring(row, "/v1/sweeps/places/table", () => fixture.grow("places", 3), { last: RESTED_FRAMES }), HIT);
    await until(page, "the address", () => page.evaluate(() => location.hash), (hash) => /trials\/3095$/.test(hash));
  });

  await step("a control below the importance that is pressed while the importance comes", async () => {
    const importance = fixture.hold("GET", "/v1/sweeps/digits-mlp/importance");
    await visitAnew("#/sweeps/digits-mlp");
    await importance.arrived;
    const chip = region("Curves of all trials").getByRole("button", { name: "Relative time" });
    await chip.waitFor();
    await frames(page, SETTLED_FRAMES);
    const top = () => region("Curves of all trials").evaluate((r) => r.getBoundingClientRect().top + scrollY);
    const before = await top();
    importance.release();
    await region("Importance").locator("tbody tr").first().waitFor();
    assert.equal(await top(), before, "what is below does not move");
    await chip.click();
  });

  await step("the trial before, pressed while the files of this one come, and with them a button", async () => {
    const files = () => visitAnew("#/sweeps/digits-mlp/trials/20");
    assert.deepEqual(await pressDuring(page.getByRole("link", { name: "‹ #19" }), "/v1/sweeps/digits-mlp/trials/20/artifacts", files), HIT);
    await page.getByRole("heading", { name: "#19", exact: true }).waitFor();
  });

  await step("the space bar is a press, too; what was told meanwhile is shown afterwards", async () => {
    await visitAnew("#/sweeps/live");
    await button("Pause").focus();
    const clicks = await pressDuring(button("Pause"), "/v1/sweeps/live", () => { live.base.tags = ["by another"]; fixture.emit("sweep.changed", { sweep: "live", state: "running" }); },
      { hold: async () => { await page.keyboard.down("Space"); }, release: async () => { assert.equal(await page.getByText("by another").count(), 0); await page.keyboard.up("Space"); } });
    assert.deepEqual(clicks, HIT);
    await page.getByText("by another").waitFor();
    await button("Resume").waitFor();
    assert.equal(await focused(), "Resume", "the focus stays with the button");
    await page.keyboard.press("Space");
    await button("Pause").waitFor();
    live.base.tags = [];
  });

  await step("a press that becomes no click holds nothing for long: outside the window, on a scroll bar, with another button", async () => {
    const shown = async (tag) => {
      live.base.tags = [tag];
      fixture.emit("sweep.changed", { sweep: "live", state: "running" });
      await page.getByRole("list", { name: "Tags" }).getByText(tag, { exact: true }).waitFor();
    };
    await page.mouse.move(300, 300);
    await page.mouse.down({ button: "middle" });
    await shown("middle");
    await page.mouse.up({ button: "middle" });
    await page.mouse.down();
    await page.evaluate(() => dispatchEvent(new PointerEvent("pointermove", { pointerType: "mouse", buttons: 0 }))); // it was released outside
    await shown("outside");
    await page.mouse.up();
    live.base.tags = [];
  });

  await step("the focus stays with the trial: where others come above it, of many, and where it leaves the window", async () => {
    await visitAnew("#/sweeps/live?sort=number&order=desc");
    await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === live.trials.length);
    const number = live.trials.length - 3;
    await page.getByLabel(`Select trial ${number}`, { exact: true }).focus();
    const told = await focused();
    for (let i = 0; i < 3; i++) fixture.finish("live");
    await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === live.trials.length);
    assert.equal(await focused(), told);
    await visitAnew("#/sweeps/places?sort=number&order=desc");
    const { invented } = fixture.sweeps.get("places");
    const rows = () => until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === invented.shown);
    await rows();
    const box = page.getByLabel(`Select trial ${invented.shown - 5}`, { exact: true });
    await box.focus();
    const many = await focused();
    fixture.grow("places", 3);
    await rows();
    await frames(page, SETTLED_FRAMES);
    assert.equal(await focused(), many);
    fixture.grow("places", 90);
    await rows();
    await until(page, "the focus", focused, (name) => name === "Trials");
  });

  await step("what is typed as the end of a range stays while trials come", async () => {
    await visitAnew("#/sweeps/begins2");
    const panel = region("Parameters of all trials");
    await untilInSight(page, "the lines", panel, () => panel.getAttribute("data-drawn"), (n) => Number(n) > 0);
    await panel.locator("details.ranges summary").click();
    const field = panel.getByLabel("p1, from");
    await field.pressSequentially("0.1");
    const drawn = Number(await panel.getAttribute("data-drawn"));
    for (let i = 0; i < 2; i++) fixture.finish("begins2");
    await until(page, "more lines", () => panel.getAttribute("data-drawn"), (n) => Number(n) === drawn + 2);
    assert.equal(await field.inputValue(), "0.1");
    assert.ok(await field.evaluate((input) => input === document.activeElement), "the focus");
    await visit("#/runners");
    assert.equal(await page.evaluate(() => location.hash), "#/runners", "and goes with the view");
  });

  await step("a dialog stays, with what was typed, when what it was opened for changes", async () => {
    const sweep = fixture.sweeps.get("digits-mlp");
    const told = (state) => {
      sweep.base.state = state;
      fixture.emit("sweep.changed", { sweep: "digits-mlp", state });
      return page.locator(`.head .state-${state}`).waitFor({ state: "attached" });
    };
    await visitAnew("#/sweeps/digits-mlp");
    await button("Add to models…").click();
    await page.getByLabel("Model", { exact: true }).fill("mine");
    await told("running");
    assert.equal(await page.getByLabel("Model", { exact: true }).inputValue(), "mine");
    await button("Leave it").click();
    await told("completed");
    const trial = sweep.trials[17];
    await visitAnew("#/sweeps/digits-mlp/trials/17");
    await page.getByRole("button", { name: /^Whole output/ }).click();
    const all = page.getByRole("dialog", { name: /^Output of/ });
    await all.getByRole("region", { name: "All output" }).waitFor();
    const before = { ...trial };
    Object.assign(trial, { state: "running", attempt: 3, finished_at: null });
    fixture.emit("trial.changed", { sweep: "digits-mlp", number: 17, state: "running", attempt: 3 });
    await until(page, "the output of the new attempt", () => region("Output").textContent(), (seen) => seen.includes("attempt 3"));
    assert.ok(await all.isVisible(), "what was being read");
    Object.assign(trial, before);
  });

  await step("by keyboard alone every control is reached, in sight and with a mark", async () => {
    for (const address of ["#/sweeps/begins2", "#/sweeps/digits-mlp/trials/17", "#/runners", "#/sweeps"]) {
      await visitAnew(address);
      await calm();
      await frames(page, SETTLED_FRAMES);
      const all = await page.evaluate(() => {
        window.controls = new Set([...document.querySelectorAll("a[href], button:not([disabled]), input:not([disabled]), select, textarea, summary, [tabindex='0']")].filter((e) => e.checkVisibility({ visibilityProperty: true })));
        document.activeElement?.blur();
        return window.controls.size;
      });
      assert.ok(all > 10, address);
      const faults = [];
      let ends = 0;
      for (let i = 0; i < 2 * all; i++) {
        await page.keyboard.press("Tab");
        const fault = await page.evaluate(() => {
          const e = document.activeElement;
          window.controls.delete(e);
          const { left, right, top, bottom } = e.getBoundingClientRect();
          const inSight = right > 0 && left < innerWidth && bottom > 0 && top < innerHeight;
          return e === document.body || (inSight && getComputedStyle(e).outlineStyle !== "none") ? null : `${inSight ? "no mark" : "out of sight"}: ${e.outerHTML.slice(0, 100)}`;
        });
        if (fault !== null) faults.push(fault);
        ends += Number(await page.evaluate(() => document.activeElement === document.body));
        if (ends === 2) break; // it begins where the view before was left
      }
      assert.deepEqual(faults, [], address);
      assert.deepEqual(await page.evaluate(() => [...window.controls].filter((e) => e.isConnected).map((e) => e.outerHTML.slice(0, 100))), [], `${address}: not reached`);
    }
  });

  for (const [size, viewport] of Object.entries(SIZES)) {
    await step(`layout shift of each view, ${size}`, async () => {
      await visitAnew("#/runners");
      await page.setViewportSize(viewport);
      await frames(page);
      await page.evaluate(() => window.shifts.splice(0));
      const moved = [];
      for (const [name, view] of Object.entries(views)) {
        const most = await shiftOf(view, name);
        if (most > SHIFT_MOST) moved.push(`${name}: ${most.toFixed(3)}`);
      }
      assert.deepEqual(moved, [], `views move while they load or run, by more than ${SHIFT_MOST}`);
    });
  }

  assert.deepEqual(errors, [], "the console stayed clean");
} finally {
  fixture.close();
  await browser.close();
}
