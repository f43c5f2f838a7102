/* Every view at three sizes and in both themes, as it looked when its picture was taken: with the
 * fixture, in Chromium, compared by coarse cells, so that other fonts and texts that follow the clock do
 * not matter, but a panel that is missing, empty, moved or in the wrong colours does.
 *
 *   node tests/web/shots.mjs             compares; the pictures of a run that differs are in build/tests/web/shots/
 *   node tests/web/shots.mjs models      compares one view
 *   node tests/web/shots.mjs --update    takes the pictures of tests/web/looks/ anew: look at them
 *
 * A file has the views of one size and theme above each other, 72 cells wide. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD, DIST, frames, openBrowser, rowsOf, shows, SOURCE, step, until, untilInSight } from "./browser.mjs";
import { startFixture, TOKEN } from "./fixture.mjs";
import { pixelsOf } from "./png.mjs";
import { viewsOf } from "./views.mjs";

const SIZES = { wide: { width: 1440, height: 900 }, medium: { width: 1024, height: 768 }, phone: { width: 390, height: 844 } };
const ACROSS = 72;
const MEAN_MOST = 3;    // mean difference of a view, of 255
const CELL_FAR = 36;    // a cell that differs so much …
const FAR_MOST = 0.025; // … may be this share of a view

const FILES = join(SOURCE, "tests/web/looks");
const MADE = join(BUILD, "tests/web/shots");
const update = process.argv.includes("--update");
const only = update ? undefined : process.argv[2];
const browser = await openBrowser();
const { page, errors } = browser;
const fixture = await startFixture(DIST, 0, { twins: true });
const { region, attribute, loaded, visitAnew: visit, ...open } = viewsOf(page, fixture);

const toTop = () => page.evaluate(() => scrollTo(0, 0));

/** A panel of a sweep, to the upper edge of the window. */
const panel = (name, attr, wanted, query = "", sweep = "twin-1") => ({
  open: async () => { await visit(`#/sweeps/${sweep}${query}`); await loaded(sweep); },
  place: async () => {
    await untilInSight(page, name, region(name), attribute(region(name), attr), wanted);
    await region(name).evaluate((r) => r.scrollIntoView({ block: "start" }));
  },
});
const view = (work) => ({ open: work, place: toTop });
const is = (value) => (seen) => seen === value;

/** How each view is opened, and brought to its place after the size of the window has changed. */
const views = {
  sweeps: view(async () => { await visit("#/sweeps"); await shows(page, "rows", () => rowsOf(page, "Sweeps"), fixture.sweeps.size); }),
  sweep: view(async () => { await visit("#/sweeps/twin-1"); await loaded("twin-1"); }),
  "no trials": view(async () => { await visit("#/sweeps/empty"); await page.getByText("none begins while the sweep is paused").waitFor(); }),
  rungs: panel("Early stopping", "data-rungs", is("3"), "", "stopped"),
  front: panel("Pareto", "data-front", (n) => n !== "0", "", "two"),
  "a selection": view(async () => { await visit("#/sweeps/twin-1?picked=3-8"); await loaded("twin-1"); await shows(page, "highlighted", attribute(region("History"), "data-highlighted"), "6"); }),
  curves: panel("Curves of all trials", "data-curves", is("30")),
  parallel: panel("Parameters of all trials", "data-drawn", is("30")),
  slices: panel("Parameters of all trials", "data-marked", is("3"), "?explore=slices&picked=3-5"),
  contour: panel("Parameters of all trials", "data-drawn", is("30"), "?explore=contour"),
  timeline: panel("Timeline", "data-runs", is("30")),
  remarks: {
    open: async () => {
      await visit("#/sweeps/twin-2");
      await loaded("twin-2");
      await region("Remarks").getByRole("button", { name: "Edit tags and remarks" }).click();
      await region("Remarks").getByLabel("Tags, with commas between them").fill("baseline, wide");
      await region("Remarks").getByLabel("Remarks Markdown").fill("# Why\n**Wide** nets were *slow*.\n\n- one\n- two\n");
      await region("Remarks").getByRole("button", { name: "Save" }).click();
      await region("Remarks").getByRole("heading", { name: "Why" }).waitFor();
    },
    place: () => region("Remarks").evaluate((r) => r.scrollIntoView({ block: "start" })),
  },
  trials: panel("All trials", "aria-label", is("All trials")),
  trial: view(() => open.openTrial("digits-mlp", 17)),
  "sweeps side by side": view(async () => { await visit("#/compare?sweeps=twin-1,twin-2,twin-3,digits-mlp"); await shows(page, "groups", attribute(region("Best so far"), "data-groups"), "2"); }),
  "trials side by side": view(async () => { await visit("#/compare/trials?of=twin-1:3-6"); await shows(page, "curves", attribute(region("Curves"), "data-curves"), "4"); }),
  "new sweep": view(async () => { await visit("#/new?from=twin-1"); await region("Preview").waitFor(); }),
  "data set": view(async () => { await visit("#/data/people"); await region("Columns").waitFor(); }),
  "data sets": view(async () => { await visit("#/data"); await page.getByRole("link", { name: "people" }).waitFor(); }),
  runners: view(async () => { await visit("#/runners"); await shows(page, "rows", () => rowsOf(page, "Runners"), 2); }),
  models: view(async () => { await visit("#/models"); await shows(page, "rows", () => rowsOf(page, "Models"), fixture.models.size); }),
};

/** A picture as cells: mean colours, row by row, three numbers each. */
function cellsOf(png) {
  const { width, height, size, bytes, at } = pixelsOf(png);
  const down = Math.round((ACROSS * height) / width);
  const sums = new Float64Array(ACROSS * down * 3);
  const count = new Float64Array(ACROSS * down);
  const columns = Int32Array.from({ length: width }, (_, x) => Math.floor((x * ACROSS) / width));
  for (let y = 0; y < height; y++) {
    const row = Math.floor((y * down) / height) * ACROSS;
    for (let x = 0, from = at(0, y); x < width; x++, from += size) {
      const cell = row + columns[x];
      sums[3 * cell] += bytes[from];
      sums[3 * cell + 1] += bytes[from + 1];
      sums[3 * cell + 2] += bytes[from + 2];
      count[cell]++;
    }
  }
  assert.ok(size === 3 || bytes[at(0, 0) + 3] === 255, "a picture that is transparent");
  return { down, cells: Array.from(sums, (s, i) => Math.round(s / count[Math.floor(i / 3)])) };
}

/** The cells of all views as one picture. */
const sheetOf = (tiles) => page.evaluate(async ([text, across]) => {
  const list = JSON.parse(text);
  const canvas = new OffscreenCanvas(across, list.reduce((n, t) => n + t.down, 0));
  const ctx = canvas.getContext("2d");
  let top = 0;
  for (const { down, cells } of list) {
    const data = new ImageData(across, down);
    for (let i = 0; i < across * down; i++) data.data.set([...cells.slice(3 * i, 3 * i + 3), 255], 4 * i);
    ctx.putImageData(data, 0, top);
    top += down;
  }
  const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  return btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""));
}, [JSON.stringify(tiles), ACROSS]).then((text) => Buffer.from(text, "base64"));

/** How a view differs from its picture; null: it does not. */
function difference(now, then) {
  let [sum, far] = [0, 0];
  for (let i = 0; i < now.length; i += 3) {
    const off = Math.max(...[0, 1, 2].map((c) => Math.abs(now[i + c] - then[i + c])));
    sum += off;
    if (off > CELL_FAR) far++;
  }
  const [mean, share] = [sum / (now.length / 3), far / (now.length / 3)];
  return mean > MEAN_MOST || share > FAR_MOST ? `mean ${mean.toFixed(1)} (at most ${MEAN_MOST}), ${(100 * share).toFixed(1)} % of the cells far off (at most ${100 * FAR_MOST} %)` : null;
}

/** How many places in the window load: what is outside loads when it comes into sight. */
const loadingInSight = () => page.getByText(/^(Loading|Checking)…$/).evaluateAll((all) => all.filter((e) => {
  const box = e.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}).length);

const debug = await browser.context.newCDPSession(page);

/** What the window shows, as a PNG that is written fast. By the debugger, as page.screenshot() asks the page four times
 * for each; the views have no animation and no caret. */
async function picture() {
  const { data } = await debug.send("Page.captureScreenshot", { format: "png", optimizeForSpeed: true });
  return Buffer.from(data, "base64");
}

/** All sizes and themes of a view, by the name of their file. */
async function picturesOf({ open: begin, place }) {
  const pngs = new Map();
  await begin();
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport);
    await frames(page); // the page has taken its new size
    await place();
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await until(page, "what is loading", loadingInSight, is(0));
      await frames(page, 8); // drawings of several frames
      pngs.set(`${size}-${colorScheme}.png`, await picture());
    }
  }
  return pngs;
}

try {
  await open.visit(`#token=${TOKEN}`);
  await page.mouse.move(0, 0);
  mkdirSync(update ? FILES : MADE, { recursive: true });
  const pictures = new Map(); // by file: the pictures of all views
  const names = Object.keys(views);
  const chosen = names.filter((name) => only === undefined || name === only);
  assert.ok(chosen.length > 0, `there is no view '${only}': ${names.join(", ")}`);
  for (const name of chosen) {
    const how = views[name];
    await step(name, async () => {
      for (const [file, png] of await picturesOf(how)) pictures.set(file, [...(pictures.get(file) ?? []), png]);
    });
  }
  const differ = [];
  for (const [file, pngs] of pictures) {
    const tiles = pngs.map(cellsOf);
    if (update) {
      writeFileSync(join(FILES, file), await sheetOf(tiles));
      continue;
    }
    assert.ok(existsSync(join(FILES, file)), `there is no ${file}: node tests/web/shots.mjs --update`);
    const known = cellsOf(readFileSync(join(FILES, file)));
    assert.equal(known.down, names.length * tiles[0].down, `${file} has other views: node tests/web/shots.mjs --update`);
    for (const [i, name] of chosen.entries()) {
      const { cells } = tiles[i];
      const at = names.indexOf(name) * cells.length; // all views of a file have one size
      const found = difference(cells, known.cells.slice(at, at + cells.length));
      if (found === null) continue;
      differ.push(`${name}, ${file}: ${found}`);
      writeFileSync(join(MADE, `${name.replaceAll(" ", "-")}-${file}`), pngs[i]);
    }
  }
  assert.deepEqual(differ, [], `views look different; their pictures are in ${MADE}`);
  assert.deepEqual(errors, [], "the console stayed clean");
} finally {
  fixture.close();
  await browser.close();
}
