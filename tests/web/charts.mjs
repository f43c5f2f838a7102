/* Views that compare trials and sweeps, in Chromium with the fixture: curves of all trials, contour,
 * timeline, comparisons, the editor of a sweep, data sets. Each is checked with hostile names, values
 * that are no numbers, one trial and no trial, and by axe in both themes. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { accessible, addressMatches, DIALOG, DIST, leave, matches, openBrowser, panelNamed, rowsOf, shows, step, until, untilInSight } from "./browser.mjs";
import { startFixture, TOKEN } from "./fixture.mjs";
import { checker } from "./schema.mjs";
import { viewsOf } from "./views.mjs";

const browser = await openBrowser();
const { page, errors } = browser;
const fixture = await startFixture(DIST, 0, { twins: true });
const { region, heading, text, attribute, loaded, visitAnew: visit, openSweepAnew: openSweep, ...open } = viewsOf(page, fixture);
const inSight = (name, what, look, wanted) => untilInSight(page, what, region(name), look, wanted);
const sweepOf = (id) => fixture.sweeps.get(id);

/** The bytes of a download. */
async function saved(panel, kind) {
  const [file] = await Promise.all([page.waitForEvent("download"), panel.getByRole("button", { name: kind, exact: true }).first().click()]);
  return readFileSync(await file.path());
}

/** All three downloads of a figure; the lines of its CSV. */
async function downloads(panel, title) {
  const svg = String(await saved(panel, "SVG"));
  assert.match(svg, new RegExp(`^<svg [^]*<title>${title}[^]*</svg>\n$`));
  assert.doesNotMatch(svg, /<img|<script/);
  assert.equal((await saved(panel, "PNG")).subarray(1, 4).toString(), "PNG");
  return String(await saved(panel, "CSV")).trim().split("\r\n");
}

/** From now on the page counts what its main thread loads and what each frame does: rows that are made or changed, charts that
 * are made, or drawn as pixels, panels that appear; and numbers that are made texts. Counts, as a time would be one of the machine. */
const watchFrames = () => page.evaluate(() => {
  const notes = new Map();
  const { fetch, requestAnimationFrame: inFrame } = window;
  const { json } = Response.prototype;
  const { drawImage } = CanvasRenderingContext2D.prototype;
  const { toPrecision } = Number.prototype;
  let at = 0;
  const now = () => notes.get(at) ?? notes.set(at, { charts: new Set(), made: new Set(), changed: new Set(), plots: new Set(), panels: new Set() }).get(at);
  notes.loads = [];
  notes.bytes = 0;
  notes.texts = 0;
  Number.prototype.toPrecision = function noted(digits) { notes.texts++; return toPrecision.call(this, digits); };
  window.fetch = (url, ...rest) => { notes.loads.push(String(url)); return fetch(url, ...rest); };
  Response.prototype.json = async function noted() { const text = await this.text(); notes.bytes += text.length; return JSON.parse(text); };
  window.requestAnimationFrame = (work) => inFrame((time) => { at = time; work(time); });
  CanvasRenderingContext2D.prototype.drawImage = function noted(image, ...rest) { if (image.width > 300 && this.canvas.isConnected) now().charts.add(this.canvas); return drawImage.call(this, image, ...rest); };
  const observer = new MutationObserver((list) => {
    const added = list.flatMap((m) => [...m.addedNodes]).filter((n) => n instanceof Element);
    const made = added.filter((n) => n.nodeName === "TR");
    for (const tr of made) now().made.add(tr);
    for (const n of added) for (const [what, those] of [["plots", ".uplot"], ["panels", ".panel"]]) for (const found of [n, ...n.querySelectorAll(those)]) if (found.matches(those)) now()[what].add(found);
    for (const m of list) { const tr = (m.target.closest ? m.target : m.target.parentElement)?.closest(".rows tbody tr"); if (tr && !made.includes(tr)) now().changed.add(tr); }
  });
  observer.observe(document.body, { childList: true, characterData: true, subtree: true });
  notes.end = () => {
    observer.disconnect();
    Object.assign(window, { fetch, requestAnimationFrame: inFrame });
    Response.prototype.json = json;
    CanvasRenderingContext2D.prototype.drawImage = drawImage;
    Number.prototype.toPrecision = toPrecision;
  };
  window.frameNotes = notes;
});

/** The most of one frame, and the number of frames in which rows changed. */
const framesSeen = () => page.evaluate(() => {
  const notes = window.frameNotes;
  const frames = [...notes.values()];
  const most = (what) => Math.max(0, ...frames.map((f) => f[what].size));
  return { loads: notes.loads, bytes: notes.bytes, texts: notes.texts, plots: most("plots"), panels: most("panels"), both: frames.filter((f) => f.plots.size > 0 && f.made.size > 0).length, charts: most("charts"), made: most("made"), changed: most("changed"), changedIn: frames.filter((f) => f.changed.size > 0).length };
});

const curvesOf = (id) => sweepOf(id).trials.filter((t) => t.step).length;

const EXTREME = 10_000; // trials, tags, levels
const CATEGORIES = 1000; // the most that there may be

/** A sweep of 10,000 trials, each with a tag of its own; a parameter has 10,000 levels, another 1,000 categories. */
function inventExtreme() {
  const sweep = fixture.invent("extreme", EXTREME, 0, (space, columns) => {
    const words = Array.from({ length: CATEGORIES }, (_, i) => `category ${i}`);
    space.p0 = { type: "categorical", values: words };
    space.p1 = { type: "int", min: 0, max: EXTREME - 1 };
    const put = (column) => columns.splice(columns.findIndex((c) => c.name === column.name), 1, column);
    put({ name: "param:p0", type: "dict", words, values: Uint16Array.from({ length: EXTREME }, (_, i) => (7 * i) % CATEGORIES) });
    put({ name: "param:p1", type: "f64", values: Float64Array.from({ length: EXTREME }, (_, i) => (7919 * i) % EXTREME) });
    columns.push({ name: "tags", type: "dict", words: Array.from({ length: EXTREME }, (_, i) => `tag-${i}`), values: Uint16Array.from({ length: EXTREME }, (_, i) => i) });
  });
  for (let i = 0; i < 12; i++) sweep.add("completed"); // of which the server's models are
}

const openExtreme = async (query) => {
  if (!fixture.sweeps.has("extreme")) inventExtreme();
  await visit(`#/sweeps/extreme${query}`);
  await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === EXTREME);
};
const completedExtreme = String(Array.from({ length: EXTREME - 8 }, (_, i) => i).filter((i) => i % 97 !== 96 && i % 13 !== 12).length);
const drawnExtreme = () => untilInSight(page, "what is drawn", page.locator(".in-sight"), attribute(region("Parameters of all trials"), "data-drawn"), (n) => n === completedExtreme);

const steps = {
  "a sweep of which every trial failed says so, and invents no axis; its reasons are in the table": async () => {
    const most = 40;
    fixture.invent("broken", most, 0, (space, columns) => {
      for (const c of columns) {
        if (c.name === "state") c.values.fill(1);
        else if (c.name === "value" || c.name.startsWith("metric:")) c.values.fill(NaN);
      }
      columns.push({ name: "reason", type: "dict", words: ["exit 3: out of memory", "exit 1: no such file"], values: Uint8Array.from({ length: most }, (_, i) => i % 2) });
    });
    sweepOf("broken").counts = { ...sweepOf("broken").counts, running: 0, completed: 0, failed: most };
    await visit("#/sweeps/broken?sort=reason");
    await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === most);
    await matches(page, "the history", text(region("History")), /No trial has a value/);
    assert.equal(await region("History").locator("canvas").count(), 0);
    await shows(page, "the reasons in order", async () => (await open.columnOf("Trials", "Reason")()).slice(0, 2), ["exit 1: no such file", "exit 1: no such file"]);
    assert.equal(fixture.requests.filter((r) => r.path.startsWith("/v1/sweeps/broken/trials/")).length, 0, "reasons need no requests");
  },

  "10,000 tags and levels, 1,000 categories: in each view of the parameters, and few elements for them": async () => {
    const panel = region("Parameters of all trials");
    const elements = () => page.evaluate(() => document.querySelectorAll("*").length);
    await openExtreme("");
    await drawnExtreme();
    const few = await elements();
    assert.ok(few < 3000, `${few} elements`);
    await panel.getByText("Ranges").click();
    const select = panel.getByLabel("p0: one of");
    await shows(page, "the categories", () => select.locator("option").count(), CATEGORIES);
    await select.selectOption(["category 7", "category 993"]);
    await addressMatches(page, /brush=/);
    await matches(page, "what is highlighted", text(panel.getByTestId("marked")), /^1\d$/); // of ten trials each, those that completed
    await panel.getByText(/^Ranges/).click();
    await panel.getByRole("button", { name: "Slices" }).click();
    await inSight("Parameters of all trials", "predictions along each", () => panel.locator(".slices").getAttribute("data-predicted"), (n) => n === "8");
    await panel.getByRole("button", { name: "Contour" }).click();
    await inSight("Parameters of all trials", "a model over both", () => panel.locator("figure[data-cells]").getAttribute("data-cells"), (n) => n === String(12 * CATEGORIES));
    const cut = await region("Trials").evaluate((box) => [...box.querySelectorAll("tbody tr:not(.gap) td")].filter((td) => td.scrollWidth > td.clientWidth + 1).map((td) => td.innerText));
    assert.deepEqual(cut, [], "categories that are cut, though there is room");
    await page.getByLabel("Filter", { exact: true }).fill("tags has 'tag-4321'");
    await shows(page, "the trial with this tag", () => rowsOf(page, "Trials"), 1);
  },

  "another view of the parameters shows nothing of the one before, while it is computed": async () => {
    const panel = region("Parameters of all trials");
    await openExtreme("");
    await drawnExtreme();
    const seen = await panel.evaluate(async (section) => {
      [...section.querySelectorAll("button")].find((b) => b.textContent === "Slices").click();
      for (let i = 0; i < 20; i++) await null; // the page is rendered, and no frame has passed
      return { says: section.innerText.includes("Loading…"), drawn: section.querySelectorAll("canvas").length };
    });
    assert.deepEqual(seen, { says: true, drawn: 0 });
    await shows(page, "a drawing of each parameter", () => panel.locator(".slices figure").count(), 8);
  },

  "a table that is scrolled holds the rows of its last render alone": async () => {
    const session = await browser.context.newCDPSession(page);
    const held = async () => {
      await session.send("HeapProfiler.collectGarbage");
      return (await session.send("Runtime.getHeapUsage")).usedSize / 1e6;
    };
    const scroll = (times) => region("Trials").evaluate(async (box, n) => {
      for (let i = 1; i <= n; i++) {
        box.scrollTop = 300 * i;
        await new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });
      }
    }, times);
    await openExtreme("");
    await drawnExtreme();
    await scroll(20); // compiles what it needs
    const before = await held();
    await scroll(80);
    const grown = await held() - before;
    await session.detach();
    assert.ok(grown < 2, `80 renders of a table of some forty rows left ${grown.toFixed(1)} MB`);
  },

  "20,000 trials: the worker loads them, the page makes a few rows a frame, changes those in sight, draws one chart a frame": async () => {
    const most = 20_000;
    fixture.invent("many", most).base.metrics = [{ name: "val_error", goal: "minimize" }, { name: "m1", goal: "minimize" }];
    await watchFrames();
    await leave(page, () => page.evaluate(() => { location.hash = "#/sweeps/many"; }));
    await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === most);
    const points = (panel) => inSight(panel, "what is drawn", attribute(region(panel), panel === "History" ? "data-points" : "data-drawn"), (n) => Number(n) > 10_000);
    await points("History");
    await region("Timeline").scrollIntoViewIfNeeded(); // the panel before it comes into sight
    await points("Parameters of all trials");
    await until(page, "the charts", () => page.evaluate(() => [...window.frameNotes.values()].filter((f) => f.charts.size > 0).length), (n) => n >= 3);
    const asked = fixture.requests.filter((r) => r.path === "/v1/sweeps/many/table").length;
    assert.ok(asked >= 1, "nobody loaded the table");
    const opened = await framesSeen();
    assert.deepEqual(opened.loads.filter((l) => /\/(table|points|attempts)\b/.test(l)), [], "files that the main thread loaded");
    assert.ok(opened.bytes > 500 && opened.bytes < 50_000, `${opened.bytes} bytes of answers read by the main thread`);
    assert.equal(opened.charts, 1, "charts of many points in one frame");
    assert.ok(opened.made > 0 && opened.made <= 16 + 2, `${opened.made} rows made in one frame`);
    await shows(page, "all rows that are to exist", () => region("Trials").evaluate((box) => box.querySelectorAll("tbody tr:not(.gap)").length - Math.ceil(box.clientHeight / 28)), 12);
    const inView = await region("Trials").evaluate((box) => Math.ceil(box.clientHeight / 28) + 1);
    const numbers = () => region("Trials").evaluate((box) => [...box.querySelectorAll("tbody tr:not(.gap) td:first-child")].map((td) => td.innerText.trim()).join());
    const before = await numbers();
    await page.evaluate(() => window.frameNotes.clear());
    await region("Trials").getByRole("button", { name: "p3" }).click();
    await until(page, "the order", numbers, (now) => now !== before);
    await until(page, "the rows out of sight", async () => (await framesSeen()).changedIn, (frames) => frames >= 2);
    const sorted = await framesSeen();
    assert.ok(sorted.changed > 12 && sorted.changed <= inView, `${sorted.changed} rows changed in one frame, ${inView} are in sight`);
    await page.evaluate(() => window.frameNotes.end());
  },

  "a few trials: the parts of the page, the chart and the rows come in frames of their own": async () => {
    await visit("#/runners"); // its code is there, and that of the sweep's view
    await watchFrames();
    await leave(page, () => page.evaluate(() => { location.hash = "#/sweeps/digits-mlp"; }));
    await loaded("digits-mlp");
    const seen = await framesSeen();
    await page.evaluate(() => window.frameNotes.end());
    assert.equal(seen.plots, 1, "a chart was made");
    assert.equal(seen.both, 0, "the chart and rows of the table in one frame");
    assert.ok(seen.panels > 0 && seen.panels <= 6, `${seen.panels} panels in one frame`);
  },

  "new trials of many: rows in sight stay as they are, figures follow once a second, one look at importance serves for a while": async () => {
    fixture.invent("grows", 20_000, 1000);
    await visit("#/sweeps/grows");
    await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === 20_000);
    const importance = () => fixture.requests.filter((r) => r.path === "/v1/sweeps/grows/importance");
    await region("Importance").scrollIntoViewIfNeeded();
    await until(page, "importance", async () => importance().length, (n) => n > 0);
    assert.equal(importance()[0].query, "metric=val_error&max_age=30");
    const ended = () => page.getByTestId("ended").innerText();
    await matches(page, "the figures", ended, /^19,992$/);
    await region("Trials").scrollIntoViewIfNeeded();
    await watchFrames();
    const [began, before] = [performance.now(), fixture.requests.length];
    for (let i = 0; i < 40; i++) {
      fixture.grow("grows", 5);
      await page.waitForTimeout(50);
    }
    await matches(page, "the figures", ended, /^20,192$/);
    const seconds = (performance.now() - began) / 1000;
    const heads = fixture.requests.slice(before).filter((r) => r.path === "/v1/sweeps/grows").length;
    await until(page, "all rows", () => rowsOf(page, "Trials"), (n) => n === 20_200);
    const seen = await framesSeen();
    await page.evaluate(() => window.frameNotes.end());
    assert.ok(heads >= 1 && heads <= 2 + seconds, `the figures were loaded ${heads} times in ${seconds.toFixed(1)} s`);
    assert.ok(seen.texts < 150, `${seen.texts} numbers were made texts; the rows in sight have some 300`);
  },

  "what the axes say: one trial, one curve, two minutes; values far from the rest": async () => {
    const textsOf = async (panel) => [...String(await saved(region(panel), "SVG")).matchAll(/>([^<>]*)<\/text>/g)].map((m) => m[1]);
    await visit(`#/sweeps/digits-mlp?filter=${encodeURIComponent("number == 0")}`);
    await shows(page, "rows", () => rowsOf(page, "Trials"), 1);
    const history = await textsOf("History");
    assert.ok(history.includes("0") && !history.includes("50"), `the axis of one trial: ${history}`);
    await inSight("Curves of all trials", "one curve", text(region("Curves of all trials")), (t) => /\b1 curve\b(?!s)/.test(t));
    const from = Math.min(...sweepOf("digits-mlp").trials.map((t) => Date.parse(t.started_at)));
    await openSweep("digits-mlp", `?from=${from}&to=${from + 100_000}`);
    await inSight("Timeline", "the attempts", attribute(region("Timeline"), "data-runs"), (n) => n === "46");
    const times = (await textsOf("Timeline")).filter((t) => /^\d\d:\d\d/.test(t));
    assert.ok(times.length > 2 && new Set(times).size === times.length, `times along the axis: ${times}`);
    const trial = sweepOf("twin-1").trials.find((t) => t.state === "completed");
    const { value } = trial;
    trial.value = 1e30;
    await visit("#/compare?sweeps=twin-1,twin-2");
    await matches(page, "what is not shown", text(region("Distribution")), /far from the rest lie beyond the edge/);
    assert.ok((await textsOf("Distribution")).every((t) => !t.includes("e29")), "one value flattens the distribution");
    trial.value = value;
  },

  "curves of all trials: all of them, stopped ones apart, by step and time, smoothed; in the address": async () => {
    await openSweep("digits-mlp");
    const panel = region("Curves of all trials");
    await inSight("Curves of all trials", "the curves", attribute(panel, "data-curves"), (n) => n === String(curvesOf("digits-mlp")));
    await matches(page, "what is stopped", text(panel), /40 curves, 2 stopped/);
    await panel.getByRole("button", { name: "Relative time" }).click();
    await addressMatches(page, /across=time/);
    await matches(page, "the axis in words", attribute(panel.getByRole("img"), "aria-label"), /^val_error of 40 trials against the seconds since its attempt began; 2 of them were stopped/);
    await panel.getByLabel("Smooth").fill("0.6");
    await panel.getByLabel("Log y").check();
    await addressMatches(page, /smooth=0\.6/);
    await leave(page, () => page.reload());
    await loaded("digits-mlp");
    await inSight("Curves of all trials", "the same after a reload", attribute(panel.getByRole("img"), "aria-label"), (l) => /seconds/.test(l ?? ""));
    assert.equal(await panel.getByLabel("Log y").isChecked(), true);
    const csv = await downloads(panel, "val_error of 40 trials");
    assert.equal(csv[0], "number,step,time,val_error,highlighted");
    assert.equal(csv.length, 1 + 20 * curvesOf("digits-mlp"));
    const lines = () => panel.getByRole("region", { name: "Ends of the curves" }).locator("tbody tr").count();
    await panel.getByText("Ends of the curves").click();
    assert.equal(await lines(), 20);
  },

  "curves of all trials: the filter and the selection hold, the nearest one is named, a click opens it": async () => {
    await visit("#/sweeps/digits-mlp?filter=number%20%3C%2010&picked=3-5");
    const panel = region("Curves of all trials");
    await inSight("Curves of all trials", "the curves", attribute(panel, "data-curves"), (n) => n === "10");
    await matches(page, "what is highlighted", text(panel), /10 curves, 3 highlighted/);
    const canvas = panel.getByRole("img");
    const box = await canvas.boundingBox();
    let found = false;
    for (let y = 20; y < 300 && !found; y += 6) {
      await page.mouse.move(box.x + box.width / 2, box.y + y);
      found = /#\d+ completed: step/.test(await panel.innerText());
    }
    assert.ok(found, "no curve under the pointer");
    const at = await page.evaluate(() => document.querySelector(".all-curves .caption").innerText);
    await leave(page, () => page.mouse.up({ button: "left" }).then(() => page.mouse.down()).then(() => page.mouse.up()));
    await heading(`#${/#(\d+)/.exec(at)[1]}`).waitFor();
  },

  "curves of all trials: a new point is drawn without a reload": async () => {
    await openSweep("live");
    const panel = region("Curves of all trials");
    await inSight("Curves of all trials", "the curves", attribute(panel, "data-curves"), (n) => n === String(curvesOf("live")));
    const before = curvesOf("live");
    sweepOf("live").add("completed");
    fixture.emit("trial.changed", { sweep: "live", number: sweepOf("live").trials.length - 1, state: "completed", attempt: 1 });
    await inSight("Curves of all trials", "one more", attribute(panel, "data-curves"), (n) => n === String(before + 1));
  },

  "curves of all trials: thousands are a picture of how many; hostile, one, none": async () => {
    await openSweep("big");
    const panel = region("Curves of all trials");
    await inSight("Curves of all trials", "the curves", attribute(panel, "data-curves"), (n) => n === "5000");
    await matches(page, "what is drawn", text(panel), /Many curves: the darker a place/);
    assert.equal(await panel.getAttribute("data-lines"), "1");
    await openSweep("nasty");
    await inSight("Curves of all trials", "no curve of this metric", text(panel), (t) => /No trial has a curve of __proto__/.test(t));
    await visit("#/sweeps/empty");
    await inSight("Curves of all trials", "no trial", text(panel), (t) => /No trials yet/.test(t));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  },

  "contour: two parameters that the address names, the nearest trial, downloads": async () => {
    await openSweep("tuned", "?explore=contour");
    const panel = region("Parameters of all trials");
    const done = sweepOf("tuned").trials.filter((t) => t.state === "completed").length;
    await matches(page, "the chart in words", attribute(panel.getByRole("img"), "aria-label"), new RegExp(`^width against lr of ${done} completed trials; coloured by val_error`));
    await inSight("Parameters of all trials", "the model's fields", () => panel.locator("figure").getAttribute("data-cells"), (n) => n === "144");
    await matches(page, "what they are", text(panel), /other parameters are those of #\d+, the darker the better; means from/);
    await panel.getByLabel("Up").selectOption("optimizer");
    await addressMatches(page, /cy=optimizer/);
    await inSight("Parameters of all trials", "fields of words", () => panel.locator("figure").getAttribute("data-cells"), (n) => n === "24");
    await panel.getByRole("button", { name: "Slices" }).click();
    await inSight("Parameters of all trials", "predictions along each", () => panel.locator(".slices").getAttribute("data-predicted"), (n) => n === "7");
    await matches(page, "what the lines are", text(panel), /Lines are a model's mean[^]*R² 0\.87/);
    await panel.getByRole("button", { name: "Contour" }).click();
    await matches(page, "the chart in words", attribute(panel.getByRole("img"), "aria-label"), /^optimizer against lr/);
    assert.equal((await downloads(panel, "optimizer against lr")).length, 1 + done);
    await openSweep("nasty", "?explore=contour");
    await panel.getByRole("img").waitFor();
    await inSight("Parameters of all trials", "why there is no model", text(panel), (t) => /No prediction: 2 trials have a value/.test(t));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  },

  "timeline: lanes of runners, groups and seats; zoom in the address; downloads": async () => {
    await openSweep("digits-mlp");
    const panel = region("Timeline");
    await inSight("Timeline", "the attempts", attribute(panel, "data-runs"), (n) => Number(n) === 46); // a lost attempt, and a gang whose six seats stand for it
    await matches(page, "outcomes", text(panel), /completed[^]*failed[^]*lost/);
    await panel.getByText("Runners", { exact: true }).click();
    await matches(page, "its runners", text(panel.getByRole("region", { name: "Lanes of each runner" })), /box-1[^]*box-2[^]*gpu-0/);
    const lanes = Number(await panel.getAttribute("data-lanes"));
    assert.ok(lanes >= 6 && lanes < 46, String(lanes));
    await panel.getByRole("button", { name: "Zoom in" }).click();
    await addressMatches(page, /from=\d+&to=\d+/);
    const part = attribute(panel.getByRole("img"), "aria-label");
    const before = await part();
    await panel.getByRole("button", { name: "Later" }).click();
    await until(page, "another part", part, (l) => l !== before);
    await panel.getByRole("button", { name: "Whole" }).click();
    const canvas = panel.getByRole("img");
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + 300, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 40);
    await page.mouse.up();
    await addressMatches(page, /from=\d+&to=\d+/);
    const csv = await downloads(panel, "41 attempts with 6 seats in ");
    assert.equal(csv[0], "number,attempt,seat,runner,group,began_at,ended_at,outcome");
    assert.equal(csv.length, 47);
    await openSweep("big");
    await inSight("Timeline", "5,000 attempts", attribute(panel, "data-runs"), (n) => n === "5000");
    await openSweep("nasty");
    await inSight("Timeline", "hostile runners", attribute(panel, "data-runs"), (n) => n === "3");
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  },

  "trials side by side, from the selection: what differs first, curves, outputs, files": async () => {
    await openSweep("digits-mlp", "?picked=3-5");
    await leave(page, () => region("All trials").getByRole("link", { name: "Compare 3" }).click());
    await heading("Compare 3 trials").waitFor();
    const values = region("Values");
    const chosen = [3, 4, 5].map((n) => sweepOf("digits-mlp").trials[n]);
    const names = Object.keys(sweepOf("digits-mlp").space);
    const differs = (name) => new Set(chosen.map((t) => JSON.stringify(t.params[name]))).size > 1;
    await shows(page, "how many differ", attribute(values, "data-differing"), String(names.filter(differs).length));
    const rows = () => values.locator("tbody").nth(1).locator("tr:not(.part) th").allInnerTexts();
    assert.deepEqual(await rows(), [...names.filter(differs), ...names.filter((n) => !differs(n))]);
    await shows(page, "curves", attribute(region("Curves"), "data-curves"), "3");
    await region("Curves").getByLabel("Metric").selectOption("train_loss");
    await addressMatches(page, /metric=train_loss/);
    assert.equal((await downloads(region("Curves"), "train_loss of 3 trials")).length, 61);
    await shows(page, "outputs", () => region("Outputs").locator(".log").count(), 3);
    await matches(page, "files, which are the same", text(region("Artifacts")), /model\.safetensors the same/);
    await values.getByRole("button", { name: "Leave out #4" }).click();
    await heading("Compare 2 trials").waitFor();
    await addressMatches(page, /of=digits-mlp%3A3%2C5/);
    browser.expect(/status of 404/);
    await visit("#/compare/trials?of=nasty:0,2;digits-mlp:3;nope:1");
    await matches(page, "what is not there", text(page.locator(".stale")), /#1 of nope/);
    await shows(page, "those that are", () => values.locator("thead a").allInnerTexts(), ["nasty #0", "nasty #2", "digits-mlp #3"]);
    await visit("#/compare/trials");
    await page.getByText("No trial is chosen").waitFor();
    await visit("#/compare/trials?of=digits-mlp:7");
    await shows(page, "one trial", attribute(values, "data-differing"), "0");
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  },

  "sweeps side by side: seeds are one group with its interval; best so far and distribution": async () => {
    await visit("#/sweeps");
    for (const id of ["twin-1", "twin-2", "twin-3", "digits-mlp"]) await page.getByLabel(`Select sweep ${id}`, { exact: true }).check();
    await leave(page, () => page.getByRole("link", { name: "Compare 4" }).click());
    const best = region("Best so far");
    await shows(page, "groups", attribute(best, "data-groups"), "2");
    await matches(page, "the group", text(best), /twin-1 \(3 seeds\)/);
    const bests = ["twin-1", "twin-2", "twin-3"].map((id) => sweepOf(id).view.best.value).sort((a, b) => a - b);
    const median = Number(/at the end: twin-1 \(3 seeds\) ([\d.e-]+)/.exec(await best.getByRole("img").getAttribute("aria-label"))[1]);
    assert.ok(Math.abs(median - bests[1]) < 1e-3 * bests[1], `${median}: ${bests}`);
    await best.getByRole("button", { name: "Time" }).click();
    await addressMatches(page, /across=seconds/);
    await best.getByRole("button", { name: "Steps" }).click();
    await matches(page, "steps", attribute(best.getByRole("img"), "aria-label"), /against steps of all trials/);
    const csv = await downloads(best, "Best val_error so far against steps of all trials");
    const ends = csv.filter((l) => l.startsWith("twin-1")).at(-1).split(",").slice(2).map(Number);
    assert.ok(Math.abs(ends[1] - bests[1]) < 1e-12 && ends[0] >= bests[0] && ends[2] <= bests[2] && ends[0] < ends[1], String(ends));
    await shows(page, "distributions", attribute(region("Distribution"), "data-sweeps"), "4");
    assert.equal((await downloads(region("Distribution"), "Share of the completed trials")).length, 1 + 30 * 3 + sweepOf("digits-mlp").view.counts.completed);
    await page.getByRole("button", { name: "Leave out digits-mlp" }).click();
    await shows(page, "groups", attribute(best, "data-groups"), "1");
    await page.getByLabel("Add").fill("nasty");
    await shows(page, "the sweeps", attribute(region("Compared"), "data-sweeps"), "4");
    await page.getByText(/Their first objectives differ/).waitFor();
    await visit("#/compare?sweeps=empty");
    await shows(page, "a sweep without trials", attribute(region("Compared"), "data-sweeps"), "1");
    assert.equal(await best.count(), 0);
    await visit("#/compare?sweeps=nope");
    await page.getByText("Not there: nope.").waitFor();
    await visit("#/compare");
    await page.getByText("No sweep is chosen").waitFor();
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  },

  "a sweep is begun: faults with their lines as one types, a preview, then its page": async () => {
    await visit("#/sweeps");
    await leave(page, () => page.getByRole("link", { name: "New sweep" }).click());
    const faults = region("Faults");
    const area = page.getByLabel("Sweep document", { exact: true });
    await shows(page, "no faults", attribute(faults, "data-faults"), "0");
    await area.fill("name: mine\nmetric: {name: loss, goal: minimize}\nparameters:\n  lr:\n    type: float\n    min: 3\n    max: 1\nwhatever: 1\nlimits: {max_trials: 9}\n");
    await shows(page, "faults", attribute(faults, "data-faults"), "2");
    await matches(page, "the lines", text(faults), /line 8[^]*whatever is unknown[^]*line 7[^]*must be above min/);
    assert.equal(await page.getByRole("button", { name: "Begin the sweep" }).isDisabled(), true);
    await faults.getByRole("button", { name: "line 7" }).click();
    assert.equal(await area.evaluate((a) => a.value.slice(a.selectionStart, a.selectionEnd)), "    max: 1");
    await area.fill("name: mine\nmetric: {name: loss\n");
    await matches(page, "a fault of YAML", text(faults), /line \d/);
    await area.fill("name: mine\nmetric: {name: loss, goal: minimize}\nparameters: {lr: {type: float, min: 0, max: 1}}\nsearch: {method: grid, seed: 3}\nlimits: {max_trials: 9}\n");
    const preview = region("Preview");
    await matches(page, "the preview", text(preview), /Trials\s*9[^]*Cells of the grid\s*1,234[^]*point 0 of grid/);
    await leave(page, () => page.getByRole("button", { name: "Begin the sweep" }).click());
    await heading("mine").waitFor();
    const sent = fixture.requests.filter((r) => r.method === "POST" && r.path === "/v1/sweeps").map((r) => r.body);
    assert.deepEqual(sent, [{ name: "mine", metric: { name: "loss", goal: "minimize" }, parameters: { lr: { type: "float", min: 0, max: 1 } }, search: { method: "grid", seed: 3 }, limits: { max_trials: 9 } }]);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  },

  "a sweep is cloned, and deleted after a question": async () => {
    await openSweep("twin-3");
    await leave(page, () => page.getByRole("link", { name: "Clone" }).click());
    await matches(page, "its document", () => page.getByLabel("Sweep document", { exact: true }).inputValue(), /^name: twin-3\n[^]*seed: 47/);
    await shows(page, "no faults", attribute(region("Faults"), "data-faults"), "0");
    await openSweep("twin-3");
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Keep it" }).click();
    assert.ok(sweepOf("twin-3"));
    await page.getByRole("button", { name: "Delete…" }).click();
    await leave(page, () => page.getByRole("button", { name: "Delete the sweep" }).click());
    await heading("Sweeps").waitFor();
    assert.equal(fixture.sweeps.has("twin-3"), false);
    await openSweep("live");
    assert.equal(await page.getByRole("button", { name: "Delete…" }).count(), 0, "it has not ended");
  },

  "a selection: cancelled, tried again, and enqueued with changes": async () => {
    const live = sweepOf("live");
    const running = live.trials.filter((t) => t.state === "running").map((t) => t.number);
    const failed = live.trials.filter((t) => t.state === "failed").map((t) => t.number);
    const selected = region("All trials").getByRole("group", { name: "Selected trials" });
    await openSweep("live", `?picked=${[...running, ...failed].join()}`);
    await selected.getByRole("button", { name: `Cancel ${running.length}…` }).click();
    await page.getByRole("button", { name: "Cancel them" }).click();
    await until(page, "cancelled trials", async () => running.filter((n) => live.trials[n].state === "cancelled").length, (n) => n === running.length);
    await selected.getByRole("button", { name: `Retry ${running.length + failed.length}…` }).click();
    await page.getByRole("button", { name: "Retry them" }).click();
    await until(page, "queued trials", async () => [...running, ...failed].filter((n) => live.trials[n].state === "queued").length, (n) => n === running.length + failed.length);
    await openSweep("live", "?picked=0-1");
    const before = live.trials.length;
    await selected.getByRole("button", { name: "Enqueue again…" }).click();
    const dialog = page.getByRole("dialog", { name: "Enqueue 2 configurations again" });
    browser.expect(/status of 400/);
    await dialog.getByLabel("dropout", { exact: true }).fill("7");
    await dialog.getByRole("button", { name: "Enqueue" }).click();
    await dialog.getByRole("alert").getByText("Trial #0: dropout is out of range").waitFor();
    await dialog.getByLabel("dropout", { exact: true }).fill("0.25");
    await dialog.getByLabel("lr", { exact: true }).fill("/2");
    await dialog.getByRole("button", { name: "Enqueue" }).click();
    await dialog.waitFor({ state: "detached" });
    const made = live.trials.slice(before);
    assert.deepEqual(made.map((t) => t.params), [0, 1].map((n) => ({ ...live.trials[n].params, dropout: 0.25, lr: live.trials[n].params.lr / 2 })));
  },

  "tags and remarks of a sweep: edited, shown as Markdown without any HTML": async () => {
    await openSweep("twin-1");
    const panel = region("Remarks");
    await panel.getByRole("button", { name: "Edit tags and remarks" }).click();
    await panel.getByLabel("Tags, with commas between them").fill("baseline, <b>, baseline");
    await panel.getByLabel("Remarks Markdown").fill("# Why\n**wide** nets <img src=x onerror='window.pwned=1'>\n\n- [bad](javascript:window.pwned=1)\n- [good](https://example.org/)");
    await panel.getByRole("button", { name: "Save" }).click();
    await panel.getByRole("heading", { name: "Why" }).waitFor();
    await shows(page, "the text", text(panel.locator("strong")), "wide");
    await shows(page, "links", () => panel.locator(".markdown a").evaluateAll((all) => all.map((a) => a.getAttribute("href"))), ["https://example.org/"]);
    await shows(page, "tags", () => page.getByRole("list", { name: "Tags", exact: true }).getByRole("listitem").allInnerTexts(), ["baseline", "<b>"]);
    assert.equal(await panel.locator("img").count(), 0);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  },

  "selected trials get tags; those of a trial are on its page": async () => {
    await openSweep("twin-1", "?picked=3-5");
    await page.getByRole("button", { name: "Tag…" }).click();
    const dialog = page.getByRole("dialog", { name: "Tags of 3 trials" });
    await dialog.getByLabel("Add").fill("odd, later");
    await dialog.getByRole("button", { name: "Change tags" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual(fixture.requests.filter((r) => r.path.endsWith("/tags")).at(-1).body, { numbers: [3, 4, 5], add: ["odd", "later"], remove: [] });
    await visit("#/sweeps/twin-1?filter=tags+has+%27odd%27");
    await shows(page, "those with the tag", () => rowsOf(page, "Trials"), 3);
    await matches(page, "the column", text(region("Trials")), /Tags[^]*odd, later/);
    await visit("#/sweeps/twin-1/trials/4");
    await shows(page, "tags", () => page.getByRole("list", { name: "Tags", exact: true }).getByRole("listitem").allInnerTexts(), ["odd", "later"]);
  },

  "what a trial used: charts with downloads": async () => {
    await visit("#/sweeps/twin-1/trials/3");
    const panel = region("Use of the machine");
    await matches(page, "figures in words", attribute(panel.getByRole("img").first(), "aria-label"), /^Processor over time, in cores: [\d.]+ cores on average, at most [\d.]+ cores$/);
    await shows(page, "charts", () => panel.getByRole("img").count(), 4);
    const rows = await downloads(panel, "Processor over time");
    assert.equal(rows[0], "attempt,seat,seconds,cpu");
    assert.equal(rows.length, 61);
    assert.match(rows[21], /^1,,20,$/);
  },

  "the output is searched, by keyboard": async () => {
    await visit("#/sweeps/twin-1/trials/3");
    const panel = region("Output");
    const search = panel.getByLabel("Search the output");
    await search.fill("EPOCH 1");
    await shows(page, "how many", () => panel.getByRole("status").innerText(), "1 of 11");
    await search.press("Enter");
    await search.press("Shift+Enter");
    await search.press("Shift+Enter");
    await shows(page, "the last one", () => panel.getByRole("status").innerText(), "11 of 11");
    await shows(page, "what is marked", () => panel.locator("mark.present").innerText(), "epoch 1");
    await shows(page, "the text", () => panel.locator("pre").innerText().then((t) => /^assay-train: digits/.test(t)), true);
    await search.fill("no such line");
    await shows(page, "nothing", () => panel.getByRole("status").innerText(), "not found");
  },

  "a runner is told to leave, after a question": async () => {
    await visit("#/runners");
    await matches(page, "what is taken", text(region("Runners by state")), /8 of 16/);
    await page.getByRole("button", { name: "Drain box-1" }).click();
    await page.getByRole("dialog", { name: "Drain box-1?" }).getByRole("button", { name: "Drain the runner" }).click();
    await shows(page, "its state", () => region("Runners by state").locator(".state-draining").count(), 1);
    await page.getByRole("button", { name: "lost 1" }).click();
    await addressMatches(page, /state=lost/);
    await shows(page, "lost ones", () => region("Runners by state").locator("tbody tr").count(), 1);
  },

  "the editor completes names, values and data sets, by keyboard": async () => {
    await visit("#/new");
    const editor = page.getByLabel("Sweep document", { exact: true });
    const list = page.getByRole("listbox", { name: "What may stand here" });
    await until(page, "the schema", async () => { await editor.fill("name: a\nsear"); return list.count(); }, (n) => n === 1);
    await shows(page, "names", () => list.getByRole("option").locator("code").allInnerTexts(), ["search"]);
    await editor.press("Enter");
    await editor.pressSequentially("{method: ra");
    await shows(page, "values", () => list.getByRole("option").locator("code").allInnerTexts(), ["random", "random_halving"].slice(0, await list.getByRole("option").count()));
    await editor.press("Tab");
    await shows(page, "the text", () => editor.inputValue(), "name: a\nsearch: {method: random");
    await editor.fill("trial: {train: {dataset: ");
    await shows(page, "data sets", () => list.getByRole("option").locator("code").allInnerTexts(), ["digits", "people"]);
    await editor.press("Escape");
    await shows(page, "the list", () => list.count(), 0);
  },

  "data sets: the list, and one with its columns": async () => {
    await visit("#/runners");
    await leave(page, () => page.getByRole("link", { name: "Data", exact: true }).click());
    await shows(page, "the names", () => region("Data sets").locator("tbody a").allInnerTexts(), ["digits", "people"]);
    await leave(page, () => page.getByRole("link", { name: "people" }).click());
    await shows(page, "columns", attribute(region("Columns"), "data-columns"), "5");
    await matches(page, "what is missing", text(region("Columns")), /categorical\s*25\.0 %/);
    await shows(page, "distributions", () => region("Columns").getByRole("img").count(), 5);
    await matches(page, "a distribution in words", attribute(region("Columns").getByRole("img").nth(1), "aria-label"), /^Distribution of age: 17 to 90, mean 38\.6/);
    await shows(page, "first rows", attribute(region("First rows"), "data-rows"), "20");
    await shows(page, "who uses it", attribute(region("Used by"), "data-sweeps"), "0");
    await page.getByRole("button", { name: "First rows of table" }).click();
    await matches(page, "its first rows", text(page.getByRole("dialog")), /b, c[^]*40 rows/);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    const users = [...fixture.sweeps.values()].filter((s) => s.base.document.trial?.train?.dataset === "digits").length;
    assert.ok(users > 0);
    await visit("#/data");
    const names = () => region("Data sets").locator("tbody a").allInnerTexts();
    await shows(page, "the names", names, ["digits", "people"]);
    fixture.datasets.set("fresh", { ...fixture.datasets.get("digits"), name: "fresh" });
    fixture.emit("dataset.changed", { dataset: "fresh" });
    await shows(page, "the one that was added", names, ["digits", "fresh", "people"]);
    await visit("#/data/fresh");
    await heading("fresh").waitFor();
    fixture.datasets.delete("fresh");
    browser.expect(/status of 404/);
    fixture.emit("dataset.changed", { dataset: "fresh" });
    await page.getByText("There is no data set").waitFor();
    await visit("#/data/digits");
    await shows(page, "who uses it", attribute(region("Used by"), "data-sweeps"), String(users));
    await shows(page, "the models that learned from it", attribute(region("Used by"), "data-versions"), "3");
    await matches(page, "a version", text(region("Models that learned from it")), /digits\s*2\s*champion/);
    browser.expect(/status of 404/);
    await visit("#/data/nope");
    await heading("There is no data set nope").waitFor();
  },
};

const views = {
  "1,000 categories and 10,000 levels": { open: async () => { await openExtreme("?explore=contour"); await drawnExtreme(); }, part: panelNamed("Parameters of all trials") },
  "10,000 tags": { open: () => openExtreme("?sort=tags"), part: panelNamed("All trials") },
  contour: { open: async () => { await openSweep("tuned", "?explore=contour"); await region("Parameters of all trials").getByRole("img").waitFor(); }, part: panelNamed("Parameters of all trials") },
  timeline: {
    open: async () => {
      await openSweep("digits-mlp");
      await inSight("Timeline", "the attempts", attribute(region("Timeline"), "data-runs"), (n) => n === "46");
    },
    part: panelNamed("Timeline"),
  },
  "trials side by side": { open: async () => { await visit("#/compare/trials?of=digits-mlp:3-6;nasty:0"); await shows(page, "curves", attribute(region("Curves"), "data-curves"), "5"); } },
  "sweeps side by side": { open: async () => { await visit("#/compare?sweeps=twin-1,twin-2,digits-mlp,tuned"); await shows(page, "groups", attribute(region("Best so far"), "data-groups"), "3"); } },
  "new sweep": { open: async () => { await visit("#/new"); await region("Preview").waitFor(); } },
  "new sweep with faults": { open: async () => { await visit("#/new"); await page.getByLabel("Sweep document", { exact: true }).fill("name: mine\nwhatever: 1\n"); await shows(page, "faults", attribute(region("Faults"), "data-faults"), "2"); }, part: panelNamed("Faults") },
  "enqueue again": { open: async () => { await openSweep("digits-mlp", "?picked=3-5"); await page.getByRole("button", { name: "Enqueue again…" }).click(); await page.getByRole("dialog", { name: /Enqueue 3/ }).waitFor(); }, part: DIALOG },
  "a sweep's remarks": { open: async () => { await openSweep("twin-1"); await region("Remarks").getByRole("button").click(); await page.getByLabel("Remarks Markdown").waitFor(); }, part: panelNamed("Remarks") },
  "tagging": { open: async () => { await openSweep("twin-1", "?picked=3-5"); await page.getByRole("button", { name: "Tag…" }).click(); await page.getByRole("dialog", { name: /Tags of/ }).waitFor(); }, part: DIALOG },
  "use of the machine": { open: async () => { await visit("#/sweeps/twin-1/trials/3"); await region("Use of the machine").getByRole("img").first().waitFor(); }, part: panelNamed("Use of the machine") },
  "runners": { open: async () => { await visit("#/runners"); await region("Runners by state").waitFor(); } },
  "completion": { open: async () => { await visit("#/new"); await until(page, "the list", async () => { await page.getByLabel("Sweep document", { exact: true }).fill("name: a\ns"); return page.getByRole("listbox").count(); }, (n) => n === 1); } },
  "data sets": { open: async () => { await visit("#/data"); await page.getByRole("link", { name: "people" }).waitFor(); } },
  "a data set": { open: async () => { await visit("#/data/people"); await region("Columns").waitFor(); } },
  "curves of all trials": { // with a selection, which the whole page shows
    open: async () => {
      await openSweep("digits-mlp", "?picked=3-5");
      await inSight("Curves of all trials", "the curves", attribute(region("Curves of all trials"), "data-curves"), (n) => n === "40");
    },
  },
};

const only = process.argv[2];
try {
  await open.visit(`#token=${TOKEN}`);
  for (const [name, work] of Object.entries(steps)) if (!only || new RegExp(only).test(name)) await step(name, work);
  await step("no violation of accessibility rules", () => accessible(browser, Object.fromEntries(Object.entries(views).filter(([name]) => !only || new RegExp(only).test(name))),
    (name, theme) => process.env.SHOTS && page.screenshot({ path: `${process.env.SHOTS}/${name.replaceAll(" ", "-")}-${theme}.png`, fullPage: true })));
  if (!only) await step("the fixture answered as the OpenAPI document says", async () => {
    const check = checker();
    assert.deepEqual(fixture.seen.flatMap(([method, path, body]) => check(method, path, body)).slice(0, 10), []);
    for (const path of ["/v1/preview", "/v1/sweeps/{sweep}/surface", "/v1/datasets"]) assert.ok(fixture.seen.some(([, at]) => at === path), path);
  });
  assert.deepEqual(errors, [], "the console stayed clean, and nothing broke the content security policy");
} finally {
  fixture.close();
  await browser.close();
}
