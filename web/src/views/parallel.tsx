/* Parallel coordinates of all completed trials. Up to MOST_LINES are drawn one by one; of more, the
 * picture of how many pass where, coloured by their mean fifth, and the highlighted ones as lines. */
import { useMemo, useState } from "preact/hooks";
import type { ExploredAxis } from "../data/explore";
import { brush, brushes, type Brushes, type Range } from "../data/selection";
import { count, cut } from "../format";
import { shortened } from "../parts/labels";
import { Figure } from "../parts/figure";
import { drawDensity } from "../parts/frame";
import { placeOf, placeOfWord, valueOf, type Axis } from "../parts/scale_of";
import type { Surface } from "../parts/surface";
import { choose, route } from "../route";
import { colour } from "../theme";
import { csvFile, shadesNow, type Exploring } from "./explore";

export const MOST_LINES = 2000;
const TOP = 34;
const BOTTOM = 40;
const NONE_BELOW = 24; // where lines of trials without a value pass below an axis
const HEIGHT = 380;
const SIDE = 70;
const END = 0.01;       // of an axis: who drags so near to its end means all that is there
const LETTER_PX = 7; // of the names of axes
const LINES_AT_ONCE = 50; // between two looks at the clock

/** The columns in the order of the address; those that it does not name follow. */
export function axesInOrder(names: readonly string[], metric: string): string[] {
  const all = [...names.map((n) => `param:${n}`), metric];
  let given: unknown = null;
  try {
    given = JSON.parse(route.value.query.get("axes") ?? "[]");
  } catch {
    // no list: the order of the document
  }
  const wanted = Array.isArray(given) ? given.filter((c): c is string => all.includes(c as string)) : [];
  return [...new Set([...wanted, ...all])];
}

export function Parallel({ data }: { data: Exploring }) {
  const { sweep, explored, metric, names } = data;
  const order = axesInOrder(names, metric.column);
  const axes = useMemo(() => order.flatMap((name) => explored.axes.filter((a) => a.name === name)), [explored, order.join("\n")]);
  const ranges = brushes.value;
  const draw = useMemo(() => (s: Surface) => drawParallel(s, data, axes, ranges), [explored, axes, ranges]);
  const [drag, setDrag] = useState<{ axis: number; from: number; to: number } | null>(null);
  const move = (column: string, by: number) => {
    const next = [...order];
    const at = next.indexOf(column);
    const to = Math.min(next.length - 1, Math.max(0, at + by));
    next.splice(at, 1);
    next.splice(to, 0, column);
    choose({ axes: JSON.stringify(next) });
  };
  const point = (e: PointerEvent, x: number, y: number, width: number) => {
    const place = Math.min(1, Math.max(0, 1 - (y - TOP) / (HEIGHT - TOP - BOTTOM)));
    if (e.type === "pointerdown") {
      const axis = Math.round(((x - SIDE) / Math.max(1, width - 2 * SIDE)) * Math.max(1, axes.length - 1));
      if (axis < 0 || axis >= axes.length || Math.abs(xOf(axis, axes.length, width) - x) > 24) return;
      (e.currentTarget as Element).setPointerCapture(e.pointerId);
      setDrag({ axis, from: place, to: place });
    } else if (drag && e.type === "pointermove") setDrag({ ...drag, to: place });
    else if (drag && e.type === "pointerup") {
      const axis = axes[drag.axis];
      setDrag(null);
      if (axis) brush(axis.name, rangeBetween(axis, Math.min(drag.from, place), Math.max(drag.from, place)));
    }
  };
  const left = (i: number, more = 0) => `calc(${SIDE + more}px + (100% - ${2 * SIDE}px) * ${axes.length > 1 ? i / (axes.length - 1) : 0.5})`;
  const label = `Parallel coordinates of ${count(explored.count)} completed trials over ${axes.map((a) => a.label).join(", ")}; coloured by ${metric.name}. The ranges below choose trials.`;
  return (
    <>
      <Figure class="parallel" label={label} height={HEIGHT} draw={draw} file={`${sweep.id}-parallel`} csv={() => csvFile(data)} onPointer={point}>
        {axes.map((a, i) => (
          <button key={a.name} type="button" class="axis-name" style={{ left: left(i) }} title={`${a.label}: the arrow keys move the axis`}
            aria-label={`Axis ${a.label}, ${i + 1} of ${axes.length}; the left and right arrow move it`}
            onKeyDown={(e) => { if (e.key === "ArrowLeft" || e.key === "ArrowRight") { e.preventDefault(); move(a.name, e.key === "ArrowLeft" ? -1 : 1); } }}>{a.label}</button>
        ))}
        {drag && <i class="dragged" style={{ left: left(drag.axis, -8), top: `${TOP + (1 - Math.max(drag.from, drag.to)) * (HEIGHT - TOP - BOTTOM)}px`, height: `${Math.abs(drag.from - drag.to) * (HEIGHT - TOP - BOTTOM)}px` }} />}
      </Figure>
      <p class="note">Drag along an axis to choose a range; a click on the axis ends it.{noteOf(data)}</p>
    </>
  );
}

function noteOf({ explored: { count: all, marked, density, drawn, faint } }: Exploring): string {
  if (density === null) return "";
  const lines = drawn.length - faint;
  if (marked === null) return ` Many lines: the darker a place, the more of the ${count(all)} trials pass it; its colour is that of their mean fifth.`;
  return ` ${lines < marked ? `${count(lines)} of ${count(marked)} highlighted lines are drawn` : "Highlighted trials are lines"}; the others are shown by how many pass.`;
}

const xOf = (axis: number, axes: number, width: number) => (axes > 1 ? SIDE + ((width - 2 * SIDE) * axis) / (axes - 1) : width / 2);

/** The part of an axis between two places; null: it is too small, a click. */
function rangeBetween(axis: Axis, low: number, high: number): Range | null {
  if (high - low < 0.01) return null;
  if (axis.words === null) return { min: low <= END ? null : valueOf(axis, low), max: high >= 1 - END ? null : valueOf(axis, high) };
  const inside = axis.words.filter((w) => { const p = placeOfWord(axis, w); return p >= low && p <= high; });
  return inside.length === 0 ? null : { words: inside };
}

function* drawParallel(s: Surface, { explored }: Exploring, axes: readonly ExploredAxis[], ranges: Brushes): Generator<void> {
  const bottom = s.height - BOTTOM;
  const tall = bottom - TOP;
  const xs = axes.map((_, i) => xOf(i, axes.length, s.width));
  const ys = (i: number) => axes.map((a) => { const p = a.places[i]!; return Number.isNaN(p) ? bottom + NONE_BELOW : bottom - p * tall; });
  const { density, drawn, faint, fifth, marked } = explored;
  const shades = shadesNow();
  const [pale, others] = [colour("--grid"), colour("--point-faint")];
  if (density) {
    drawDensity(s, { left: SIDE, right: s.width - SIDE, top: TOP, bottom }, density, (tone) => (marked === null ? shades[tone]! : others), 0.75);
    yield;
  } else {
    for (let i = 0; i < faint; i++) {
      s.line(xs, ys(i), pale, 1, 0.6);
      if (i % LINES_AT_ONCE === 0) yield;
    }
  }
  if (!density || marked !== null) {
    const opacity = Math.max(0.12, Math.min(0.75, 60 / Math.max(1, drawn.length - faint)));
    for (let i = faint; i < drawn.length; i++) {
      s.line(xs, ys(i), shades[fifth[i]!]!, 1.25, opacity);
      if (i % LINES_AT_ONCE === 0) yield;
    }
  }
  drawAxes(s, explored.count, axes, xs, ranges, bottom, tall);
}

function drawAxes(s: Surface, all: number, axes: readonly ExploredAxis[], xs: readonly number[], ranges: Brushes, bottom: number, tall: number): void {
  const [text, strong, accent, panel] = [colour("--text-2"), colour("--text"), colour("--accent"), colour("--panel")];
  const apart = xs.length > 1 ? xs[1]! - xs[0]! : s.width;
  const isTight = Math.max(...axes.map((a) => Math.min(18, a.label.length))) * LETTER_PX > apart;
  axes.forEach((axis, i) => {
    const x = xs[i]!;
    s.line([x, x], [TOP, bottom], text, 1, 1);
    const range = ranges.get(axis.name);
    if (range && "min" in range) {
      const [low, high] = [range.min === null ? 0 : placeOf(axis, range.min), range.max === null ? 1 : placeOf(axis, range.max)].map((p) => Math.min(1, Math.max(0, p))) as [number, number];
      s.box(x - 6, bottom - high * tall, 12, Math.max(2, (high - low) * tall), accent, 0.3);
    } else if (range && "words" in range) for (const w of range.words) { const p = placeOfWord(axis, w); if (!Number.isNaN(p)) s.box(x - 6, bottom - p * tall - 6, 12, 12, accent, 0.3); }
    const labels = shortened(axis.ticks.map((t) => t.label), 10);
    axis.ticks.forEach((t, at) => {
      const y = bottom - t.place * tall;
      s.line([x - 4, x], [y, y], text, 1, 1);
      const label = labels[at]!;
      const wide = 6.2 * label.length;
      s.box(x - 8 - wide, y - 7, wide + 2, 14, panel, 0.8);
      s.text(x - 7, y, label, text, "end");
    });
    if (axis.active < all) s.text(x - 7, bottom + NONE_BELOW, "none", text, "end");
    if (axis.beyond) s.text(x, bottom + 10, "far ones at the edge", text, "middle");
    const isLow = isTight && i % 2 === 1; // where names would meet, every second one stands lower
    s.text(x, isLow ? 25 : 11, cut(axis.label, Math.max(4, Math.min(18, Math.floor((isTight ? 2 * apart : apart) / LETTER_PX)))), strong, "middle");
  });
}
