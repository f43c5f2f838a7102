/* Each parameter against the metric, for all completed trials, with what a model predicts along it. */
import { useMemo, useState } from "preact/hooks";
import type * as Api from "../api/types";
import { valueAt } from "../data/columns";
import type { ExploredAxis } from "../data/explore";
import { count, sig } from "../format";
import { useSight } from "../live/lazy_resource";
import { Figure } from "../parts/figure";
import { drawFrame, frameOf, type Frame } from "../parts/frame";
import { placeOf, placeOfValue } from "../parts/scale_of";
import type { Surface } from "../parts/surface";
import { go, href } from "../route";
import { colour } from "../theme";
import { csvFile, shadesNow, type Exploring } from "./explore";

export const MOST_DOTS = 10_000; // of all slices together
const HEIGHT = 190;
const PAD = { left: 52, right: 10, top: 10, bottom: 34 };
const REACH_PX = 12;
const DOTS_AT_ONCE = 500;

export function Slices({ data }: { data: Exploring }) {
  const { names, metric, model, sweep, explored: { count: all, drawn } } = data;
  // Constrained metrics that are no objectives have no model.
  const isObjective = sweep.metrics.some((m) => m.name === metric.name);
  const resource = useMemo(() => model.surfacesOf(isObjective ? metric.name : sweep.metric.name), [model, metric.name, isObjective]);
  const element = useSight<HTMLDivElement>(resource);
  const predicted = isObjective ? resource.value.value : null;
  const failed = resource.refresher.error.value;
  return (
    <>
      <div class="slices" ref={element} data-predicted={predicted?.surfaces.length ?? 0}>{names.map((n) => <Slice key={n} data={data} name={n} surface={predicted?.surfaces.find((s) => s.x.name === n) ?? null} />)}</div>
      <p class="note foretold">{!isObjective ? "" : failed !== null ? `The model's prediction is ${predicted ? "not up to date" : "not known"}: ${failed}.` : predicted === null ? "" : predicted.reason !== null ? `No model: ${predicted.reason}.` : <>Lines are a model's mean along the parameter, bands two deviations; the other parameters are those of {predicted.surfaces.find((s) => s.base_trial !== null) ? <a href={href(["sweeps", sweep.id, "trials", predicted.surfaces.find((s) => s.base_trial !== null)!.base_trial!])}>#{predicted.surfaces.find((s) => s.base_trial !== null)!.base_trial}</a> : "the best trial"}.{predicted.r2 !== null && <> R² {predicted.r2.toFixed(2)}.</>}</>}</p>
      {all > drawn.length && <p class="note">{count(drawn.length)} of {count(all)} trials are drawn in each, evenly by {metric.name}; counts and ranges are of all.</p>}
    </>
  );
}

function Slice({ data, name, surface }: { data: Exploring; name: string; surface: Api.Surface | null }) {
  const { sweep, table, metric, explored } = data;
  const [under, setUnder] = useState<number | null>(null);
  const x = explored.axes.find((a) => a.name === `param:${name}`);
  const y = explored.axes.at(-1);
  const draw = useMemo(() => (s: Surface) => (x && y ? drawSlice(s, data, x, y, surface) : undefined), [explored, surface]);
  if (!x || !y) return null;
  const point = (e: PointerEvent, atX: number, atY: number, width: number) => {
    const found = e.type === "pointerleave" ? null : nearest(x, y, frameOf(width, HEIGHT, PAD), atX, atY);
    setUnder(found === null ? null : explored.drawn[found]!);
    if (e.type === "pointerup" && found !== null) go(["sweeps", sweep.id, "trials", explored.drawn[found]!]);
  };
  const row = under === null ? -1 : table.rowOf(under);
  const said = row < 0 ? `${count(x.active)} trials` : `#${under}: ${name} ${show(valueAt(table.column(x.name), row))}, ${metric.name} ${show(valueAt(table.column(metric.column), row))}`;
  return (
    <figure>
      <figcaption><b>{name}</b><span class="faint">{said}</span></figcaption>
      <Figure label={`${metric.name} against ${name} of ${count(x.active)} completed trials`} height={HEIGHT} draw={draw} file={`${sweep.id}-slice-${name.replace(/[^\w.-]+/g, "_")}`} csv={() => csvFile(data)} onPointer={point} />
    </figure>
  );
}

export const show = (v: number | string | null) => (typeof v === "number" ? sig(v) : v ?? "none");

/** The index among the drawn trials of the one under the pointer. */
export function nearest(x: ExploredAxis, y: ExploredAxis, f: ReturnType<typeof frameOf>, atX: number, atY: number): number | null {
  let [found, least]: [number | null, number] = [null, REACH_PX ** 2];
  for (let i = 0; i < x.places.length; i++) {
    const far = (f.px(x.places[i]!) + spreadOf(x, i, f) - atX) ** 2 + (f.py(y.places[i]!) - atY) ** 2;
    if (far < least) [found, least] = [i, far];
  }
  return found;
}

/** Trials with the same word would hide each other: they are spread by their place in the order. */
export function spreadOf(x: ExploredAxis, i: number, f: ReturnType<typeof frameOf>): number {
  return x.words === null ? 0 : (((i * 0.618034) % 1) - 0.5) * Math.min(24, (f.right - f.left) / x.words.length / 2);
}

/** The model's mean with two deviations: a band along numbers, a bar for each word. */
function drawPrediction(s: Surface, f: Frame, x: ExploredAxis, y: ExploredAxis, { x: axis, mean, deviation }: Api.Surface): void {
  const [accent, places] = [colour("--accent"), axis.values.map((v) => f.px(placeOfValue(x, v)))];
  const at = (i: number, off: number) => (mean[i] === null ? NaN : f.py(placeOf(y, mean[i]! + off * (deviation[i] ?? 0))));
  const all = mean.map((_, i) => i);
  const lower = (i: number) => { const v = at(i, -2); return Number.isNaN(v) ? f.bottom : v; }; // below the lowest value of a logarithmic axis
  s.clip(f);
  if (x.words !== null) {
    const half = Math.min(14, (f.right - f.left) / x.words.length / 3);
    for (const i of all) if (!Number.isNaN(at(i, 0))) {
      s.box(places[i]! - half, at(i, 2), 2 * half, lower(i) - at(i, 2), accent, 0.16);
      s.line([places[i]! - half, places[i]! + half], [at(i, 0), at(i, 0)], accent, 2, 1);
    }
  } else {
    for (let from = 0; from < all.length;) { // the pieces between cells that do not exist
      let to = from;
      while (to < all.length && !Number.isNaN(at(to, 0))) to++;
      const piece = all.slice(from, to);
      s.area(piece.map((i) => places[i]!), piece.map(lower), piece.map((i) => at(i, 2)), accent, 0.16);
      from = to + 1;
    }
    s.line(places, all.map((i) => at(i, 0)), accent, 2, 1);
  }
  s.clip(null);
}

function* drawSlice(s: Surface, { explored }: Exploring, x: ExploredAxis, y: ExploredAxis, surface: Api.Surface | null): Generator<void> {
  const f = frameOf(s.width, s.height, PAD);
  drawFrame(s, f, x, y);
  if (surface) drawPrediction(s, f, x, y, surface);
  const shades = shadesNow();
  const pale = colour("--point-faint");
  for (let i = 0; i < explored.drawn.length; i++) {
    if (i % DOTS_AT_ONCE === 0) yield;
    if (Number.isNaN(x.places[i]!)) continue;
    const faint = i < explored.faint;
    s.dot(f.px(x.places[i]!) + spreadOf(x, i, f), f.py(y.places[i]!), 2.5, faint ? pale : shades[explored.fifth[i]!]!, faint ? 0.35 : 0.85);
  }
}
