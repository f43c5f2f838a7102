/* Opens what the downloads of a drawing saved: an SVG that is well formed and has the points, a PNG that is not blank, a
 * CSV whose rows are compared with the API's by whoever asked for it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pixelsOf } from "./png.mjs";

const PACE_MS = 120;       // Chromium drops what a page saves beyond ten files a second
const COLOURS_LEAST = 3;   // of a picture that is not blank
const DRAWN_LEAST = 0.001; // share of its pixels that differ from its first one

async function saved(page, place, kind) {
  await page.waitForTimeout(PACE_MS);
  const [download] = await Promise.all([page.waitForEvent("download"), place.getByRole("button", { name: kind, exact: true }).click()]);
  return readFileSync(await download.path());
}

/** The rows of a CSV file, by the names of its first row. */
export function rowsOfCsv(text) {
  const cells = [[]];
  const pattern = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy;
  for (let found; pattern.lastIndex < text.length && (found = pattern.exec(text)) !== null;) {
    cells.at(-1).push(found[1]?.replaceAll('""', '"') ?? found[2]);
    if (found[3] !== ",") cells.push([]);
  }
  const [head, ...rows] = cells.filter((line) => line.length > 0);
  return rows.map((line) => Object.fromEntries(head.map((name, i) => [name, line[i] ?? ""])));
}

function checkPng(png, name) {
  const { width, height, bytes, at } = pixelsOf(png);
  const colours = new Map();
  let looked = 0;
  for (let y = 0; y < height; y += 2) {
    for (let x = 0; x < width; x += 2, looked++) {
      const from = at(x, y);
      const colour = (bytes[from] << 16) | (bytes[from + 1] << 8) | bytes[from + 2];
      colours.set(colour, (colours.get(colour) ?? 0) + 1);
    }
  }
  const most = Math.max(...colours.values());
  assert.ok(colours.size >= COLOURS_LEAST && looked - most > DRAWN_LEAST * looked, `${name}.png is blank: ${colours.size} colours, ${looked - most} of ${looked} pixels differ`);
}

/** What an SVG has: how many of each element. */
function elementsOf(page, svg, name) {
  return page.evaluate(([text, of]) => {
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    if (parsed.querySelector("parsererror")) throw new Error(`${of}.svg: ${parsed.documentElement.textContent}`);
    const counts = { title: parsed.querySelector("title")?.textContent ?? "" };
    for (const e of parsed.querySelectorAll(":not(title)")) counts[e.localName] = (counts[e.localName] ?? 0) + 1;
    return counts;
  }, [svg, name]);
}

/** Save all three files of the drawing in `place`, and open them: { elements: of the SVG, rows: of the CSV }. */
export async function openDownloads(page, place, name) {
  const elements = await elementsOf(page, String(await saved(page, place, "SVG")), name);
  checkPng(await saved(page, place, "PNG"), name);
  return { elements, rows: rowsOfCsv(String(await saved(page, place, "CSV"))) };
}
