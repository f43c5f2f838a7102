/* A chart of uPlot on a Surface: what hooks draw besides its series, and the whole chart for a
 * download. The scales and the ticks are those of the chart on the page at that moment, zoom
 * included. */
import type uPlot from "uplot";
import { cut } from "../format";
import { colour } from "../theme";
import type { Picture } from "./downloads";
import { canvasSurface, type Surface } from "./surface";

/** The inner part of a chart in CSS pixels, and where values lie. */
export interface Geometry {
  left: number;
  right: number;
  top: number;
  bottom: number;
  log: boolean;
  x(value: number): number;
  /** A value at or below zero is at the lower edge of a logarithmic axis. */
  y(value: number): number;
}

function geometryOf(u: uPlot): Geometry {
  const px = devicePixelRatio;
  const [left, top] = [u.bbox.left / px, u.bbox.top / px];
  const bottom = top + u.bbox.height / px;
  const log = u.scales["y"]?.distr === 3;
  return { left, right: left + u.bbox.width / px, top, bottom, log, x: (v) => left + u.valToPos(v, "x"), y: (v) => (log && v <= 0 ? bottom : top + u.valToPos(v, "y")) };
}

export type Extra = (s: Surface, g: Geometry) => void;

/** For a hook: draw on the canvas of the chart, inside of its frame. */
export function drawInside(u: uPlot, draw: Extra): void {
  const { ctx } = u;
  if (u.data[0].length === 0) return; // a chart of many points gets them in the frame after that in which it is made
  ctx.save();
  ctx.scale(devicePixelRatio, devicePixelRatio);
  inside(canvasSurface(ctx, u.width, u.height), geometryOf(u), draw);
  ctx.restore();
}

function inside(s: Surface, g: Geometry, draw: Extra): void {
  s.clip(g);
  draw(s, g);
  s.clip(null);
}

/** How a series is drawn. after, before: steps, which change behind or in front of a point. */
export interface SeriesLook {
  line?: "straight" | "after" | "before";
  stroke?: string;
  width?: number;
  /** The radius of its points. */
  dots?: number;
  /** Points are rings in this colour. */
  ring?: string;
}

/** Ticks as uPlot has placed them. */
interface Placed {
  _splits?: number[] | null;
  _values?: (string | null)[] | null;
}

function drawAxes(s: Surface, u: uPlot, g: Geometry): void {
  const [grid, text] = [colour("--grid"), colour("--text-2")];
  const [x, y] = u.axes as (uPlot.Axis & Placed)[];
  const ticks = (a: Placed | undefined) => (a?._splits ?? []).map((v, i) => ({ v, label: a?._values?.[i] ?? "" }));
  for (const { v, label } of ticks(y)) {
    s.line([g.left, g.right], [g.y(v), g.y(v)], grid, 1, 1);
    s.text(g.left - 6, g.y(v), label, text, "end");
  }
  for (const { v, label } of ticks(x)) {
    s.line([g.x(v), g.x(v)], [g.top, g.bottom], grid, 1, 1);
    s.text(g.x(v), g.bottom + 10, label, text, "middle");
  }
  if (typeof x?.label === "string") s.text((g.left + g.right) / 2, g.bottom + 26, x.label, text, "middle");
  if (typeof y?.label === "string") s.text(g.left, g.top - 6, y.label, text, "start");
}

/** The points of a line; NaN between two parts of it. */
function lineOf(xs: ArrayLike<number | null>, ys: ArrayLike<number | null | undefined>, g: Geometry, look: SeriesLook): [number[], number[]] {
  const [px, py]: [number[], number[]] = [[], []];
  const add = (x: number, y: number) => { px.push(x); py.push(y); };
  for (let i = 0; i < xs.length; i++) {
    const v = ys[i];
    if (v === null || v === undefined) continue;
    const [x, y] = [g.x(xs[i]!), g.y(v)];
    if (py.length > 0 && look.line === "after") add(x, py.at(-1)!);
    if (py.length > 0 && look.line === "before") add(px.at(-1)!, y);
    add(x, y);
  }
  return [px, py];
}

function drawSeries(s: Surface, g: Geometry, xs: ArrayLike<number | null>, ys: ArrayLike<number | null | undefined>, look: SeriesLook): void {
  const stroke = look.stroke ?? "";
  if (look.line) s.line(...lineOf(xs, ys, g, look), stroke, look.width ?? 1.5, 1);
  for (let i = 0; look.dots && i < xs.length; i++) {
    const v = ys[i];
    if (v === null || v === undefined) continue;
    s.dot(g.x(xs[i]!), g.y(v), look.dots, look.ring ?? stroke, 1);
    if (look.ring) s.dot(g.x(xs[i]!), g.y(v), look.dots - 1.5, stroke, 1);
  }
}

/** The chart as it is now; `looks`: of each series; `legend`: what its colours mean. */
export function pictureOf(u: uPlot, looks: SeriesLook[], legend: [string, string][], under: Extra, over: Extra): Picture {
  const LEGEND_PX = 22;
  const g = geometryOf(u);
  const shifted: Geometry = { ...g, top: g.top + LEGEND_PX, bottom: g.bottom + LEGEND_PX, y: (v) => g.y(v) + LEGEND_PX };
  const draw = (s: Surface) => {
    let left = shifted.left;
    for (const [name, fill] of legend) {
      s.box(left, LEGEND_PX / 2 - 5, 9, 9, fill, 1);
      s.text(left + 13, LEGEND_PX / 2, name, colour("--text"), "start");
      left += 26 + 7 * name.length;
    }
    drawAxes(s, u, shifted);
    inside(s, shifted, under);
    inside(s, shifted, () => looks.forEach((look, i) => drawSeries(s, shifted, u.data[0], u.data[i + 1] ?? [], look)));
    inside(s, shifted, over);
  };
  return { draw, width: u.width, height: u.height + LEGEND_PX };
}

/** Crosses, as for trials that break a constraint. */
export function drawCrosses(s: Surface, xs: readonly number[], ys: readonly number[], arm: number, stroke: string): void {
  if (xs.length > MANY) return s.stamps(xs, ys, 2 * arm + 1, stroke, true); // a path of so many lines takes longer than a frame
  const [px, py]: [number[], number[]] = [[], []];
  xs.forEach((x, i) => {
    const y = ys[i]!;
    px.push(x - arm, x + arm, NaN, x - arm, x + arm, NaN);
    py.push(y - arm, y + arm, NaN, y + arm, y - arm, NaN);
  });
  return s.line(px, py, stroke, 1.5, 1);
}

const MANY = 500;

/** Highlighted trials; many of them without their edges. */
export function drawMarked(s: Surface, xs: readonly number[], ys: readonly number[], fillOf: (i: number) => string): void {
  if (xs.length > MANY) return s.stamps(xs, ys, 4, colour("--text"), false);
  return xs.forEach((x, i) => {
    s.dot(x, ys[i]!, 4.5, colour("--text"), 1);
    s.dot(x, ys[i]!, 3, fillOf(i), 1);
  });
}

export interface BarRow {
  name: string;
  /** Lengths between 0 and 1 with their colours, from the left: one after the other, or over each other. */
  parts: { from: number; to: number; fill: string; thin?: boolean }[];
  text: string;
}

/** Rows of bars with a name before and a text behind each, as tables of shares show them. */
export function barsOf(rows: readonly BarRow[], legend: [string, string][], width = 720): Picture {
  const [ROW, NAME, TEXT] = [22, 150, 190];
  const across = width - NAME - TEXT - 30;
  const draw = (s: Surface) => {
    let left = NAME;
    for (const [name, fill] of legend) {
      s.box(left, 8, 9, 9, fill, 1);
      s.text(left + 13, 13, name, colour("--text"), "start");
      left += 26 + 7 * name.length;
    }
    rows.forEach((r, i) => {
      const y = 30 + i * ROW;
      s.text(NAME - 10, y + ROW / 2, cut(r.name, 22), colour("--text"), "end");
      for (const p of r.parts) {
        const [from, to] = [p.from, p.to].map((v) => NAME + across * Math.min(1, Math.max(0, v))) as [number, number];
        s.box(from, y + (p.thin ? ROW / 2 - 1 : 4), Math.max(0, to - from), p.thin ? 2 : ROW - 8, p.fill, 1);
      }
      s.text(NAME + across + 12, y + ROW / 2, r.text, colour("--text-2"), "start");
    });
  };
  return { draw, width, height: 40 + rows.length * ROW };
}
