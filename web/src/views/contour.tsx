/* Two parameters with what a model predicts over them, and all completed trials coloured by the
 * metric. */
import { useMemo, useState } from "preact/hooks";
import type * as Api from "../api/types";
import { valueAt } from "../data/columns";
import type { ExploredAxis } from "../data/explore";
import { count } from "../format";
import { Figure } from "../parts/figure";
import { useSight } from "../live/lazy_resource";
import { drawFrame, frameOf, type Frame } from "../parts/frame";
import { placeOfValue, type Goal } from "../parts/scale_of";
import type { Surface } from "../parts/surface";
import { choose, go, route } from "../route";
import { colour } from "../theme";
import { csvFile, shadesNow, type Exploring } from "./explore";
import { nearest, show, spreadOf } from "./slices";

const HEIGHT = 420;
const PAD = { left: 72, right: 14, top: 12, bottom: 36 };
const DOTS_AT_ONCE = 500;

/** The two parameters: those of the address, else the first two. */
export function contourAxes(names: readonly string[]): string[] {
  const { query } = route.value;
  const x = names.find((n) => n === query.get("cx")) ?? names[0];
  const y = names.find((n) => n === query.get("cy") && n !== x) ?? names.find((n) => n !== x);
  return [x, y].filter((n): n is string => n !== undefined);
}

export function Contour({ data }: { data: Exploring }) {
  const { model, sweep, table, explored, metric, names } = data;
  const [nameX, nameY] = contourAxes(names);
  const isObjective = sweep.metrics.some((m) => m.name === metric.name); // other metrics have no model
  const resource = useMemo(() => model.surfacesOf(isObjective ? metric.name : sweep.metric.name, nameX ?? null, nameY ?? null), [model, metric.name, isObjective, nameX, nameY]);
  const element = useSight<HTMLElement>(resource);
  const predicted = isObjective ? resource.value.value : null;
  const failed = isObjective ? resource.refresher.error.value : null;
  const surface = predicted?.surfaces[0] ?? null;
  const [under, setUnder] = useState<number | null>(null);
  const x = explored.axes.find((a) => a.name === `param:${nameX}`);
  const y = explored.axes.find((a) => a.name === `param:${nameY}`);
  const draw = useMemo(() => (s: Surface) => (x && y ? drawContour(s, data, x, y, surface) : undefined), [explored, x, y, surface]);
  if (nameX === undefined || nameY === undefined) return <p class="hint">A contour needs two parameters.</p>;
  const point = (e: PointerEvent, atX: number, atY: number, width: number) => {
    const found = e.type === "pointerleave" || !x || !y ? null : nearest(x, y, frameOf(width, HEIGHT, PAD), atX, atY);
    setUnder(found === null ? null : explored.drawn[found]!);
    if (e.type === "pointerup" && found !== null) go(["sweeps", sweep.id, "trials", explored.drawn[found]!]);
  };
  const row = under === null ? -1 : table.rowOf(under);
  const valueIn = (column: string) => show(valueAt(table.column(column), row));
  const select = (label: string, key: string, chosen: string, others: readonly string[]) => <label class="toggle">{label} <select value={chosen} onChange={(e) => choose({ [key]: e.currentTarget.value })}>{others.map((n) => <option key={n} value={n}>{n}</option>)}</select></label>;
  return (
    <figure ref={element} data-cells={surface?.mean.length ?? 0}>
      <figcaption class="bar">{select("Across", "cx", nameX, names)}{select("Up", "cy", nameY, names.filter((n) => n !== nameX))}<span class="grow" /><span class="faint">{row < 0 ? "" : `#${under}: ${nameX} ${valueIn(`param:${nameX}`)}, ${nameY} ${valueIn(`param:${nameY}`)}, ${metric.name} ${valueIn(metric.column)}`}</span></figcaption>
      {x && y ? <Figure label={`${nameY} against ${nameX} of ${count(explored.count)} completed trials; coloured by ${metric.name}`} height={HEIGHT} draw={draw} file={`${sweep.id}-contour`} csv={() => csvFile(data)} onPointer={point} /> : <p class="hint">No trial has a value of both.</p>}
      {isObjective && <p class="note">{failed !== null ? `The model's prediction is ${predicted ? "not up to date" : "not known"}: ${failed}.` : predicted === null ? "The model is being asked…" : predicted.reason !== null || surface?.reason ? `No prediction: ${predicted.reason ?? surface?.reason}.` : surface === null ? "" : `Fields: what a model predicts where the other parameters are those of ${surface.base_trial === null ? "the best trial" : `#${surface.base_trial}`}, the darker the better${bandText(surface)}.`}</p>}
      {explored.count > explored.drawn.length && <p class="note">{count(explored.drawn.length)} of {count(explored.count)} trials are drawn, evenly by {metric.name}.</p>}
    </figure>
  );
}

const known = (list: readonly (number | null)[]): number[] => list.filter((v): v is number => v !== null && Number.isFinite(v));

function bandText({ mean }: Api.Surface): string {
  const all = known(mean);
  return all.length === 0 ? "" : `; means from ${show(Math.min(...all))} to ${show(Math.max(...all))}`;
}

/** The edges of cells around places. */
function edgesOf(places: readonly number[]): number[] {
  const middle = places.slice(1).map((p, i) => (p + places[i]!) / 2);
  const first = places.length > 1 ? places[0]! - (middle[0]! - places[0]!) : 0;
  const last = places.length > 1 ? places.at(-1)! + (places.at(-1)! - middle.at(-1)!) : 1;
  return [first, ...middle, last];
}

const BANDS = 10;

/** The means as fields in ten equal parts of their ranks: one far value does not flatten the others. */
function drawSurface(s: Surface, f: Frame, x: ExploredAxis, y: ExploredAxis, { x: ax, y: ay, mean }: Api.Surface, goal: Goal): void {
  if (ay === null) return;
  const sorted = known(mean).sort((a, b) => (goal === "maximize" ? a - b : b - a));
  const rank = new Map(sorted.map((v, i) => [v, Math.min(BANDS - 1, Math.floor((BANDS * i) / sorted.length))]));
  const fill = colour("--accent");
  // Words stand in the order of the axis.
  const order = (a: ExploredAxis, values: readonly Api.Value[]) => values.map((v, i) => ({ i, place: placeOfValue(a, v) })).filter((c) => Number.isFinite(c.place)).sort((p, q) => p.place - q.place);
  const [xs, ys] = [order(x, ax.values), order(y, ay.values)];
  const [ex, ey] = [edgesOf(xs.map((c) => c.place)), edgesOf(ys.map((c) => c.place))];
  s.clip(f);
  ys.forEach((cy, k) => xs.forEach((cx, i) => {
    const v = mean[cy.i * ax.values.length + cx.i];
    if (v === null || v === undefined || !Number.isFinite(v)) return;
    s.box(f.px(ex[i]!), f.py(ey[k + 1]!), f.px(ex[i + 1]!) - f.px(ex[i]!) + 0.4, f.py(ey[k]!) - f.py(ey[k + 1]!) + 0.4, fill, 0.04 + (0.42 * rank.get(v)!) / (BANDS - 1));
  }));
  s.clip(null);
}

function* drawContour(s: Surface, { explored, metric }: Exploring, x: ExploredAxis, y: ExploredAxis, surface: Api.Surface | null): Generator<void> {
  const f = frameOf(s.width, s.height, PAD);
  if (surface) drawSurface(s, f, x, y, surface, metric.goal);
  drawFrame(s, f, x, y);
  const shades = shadesNow();
  const [pale, text] = [colour("--point-faint"), colour("--text-2")];
  s.text(f.left, 6, y.label.length > 40 ? `${y.label.slice(0, 39)}…` : `${y.label}${y.log ? " (log)" : ""}`, text, "start");
  for (let i = 0; i < explored.drawn.length; i++) {
    if (i % DOTS_AT_ONCE === 0) yield;
    if (Number.isNaN(x.places[i]! + y.places[i]!)) continue;
    const faint = i < explored.faint;
    const up = spreadOf(y, i, { ...f, left: f.top, right: f.bottom });
    s.dot(f.px(x.places[i]!) + spreadOf(x, i, f), f.py(y.places[i]!) + up, 3, faint ? pale : shades[explored.fifth[i]!]!, faint ? 0.35 : 0.85);
  }
}
