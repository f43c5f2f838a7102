/* The chart of a sweep: every completed trial's value and the best so far, against the trial's
 * number. */
import { useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type * as Api from "../api/types";
import { numberAt, type Table } from "../data/columns";
import { sig } from "../format";
import { colour } from "../theme";
import { openLabel, positiveOnly, type Foretold, type History, type Left } from "./history";
import { Downloads } from "./downloads";
import { axis, onDrag, Plot, tickText, wholeAxis, type Options } from "./plot";
import { drawCrosses, drawInside, drawMarked, pictureOf, type Extra, type Geometry, type SeriesLook } from "./plot_picture";
import { numbersBetween } from "./scale_of";
import type { Surface } from "./surface";
import { tipOf, trialLines } from "./tip";

interface Props {
  sweep: Api.Sweep;
  table: Table;
  history: History;
  /** The prediction of each trial; null: none is drawn. */
  predictions: Foretold | null;
  left: Left;
  /** The part that is shown, numbers of trials; null: all. */
  part: readonly [number, number] | null;
  choosePart: (part: readonly [number, number] | null) => void;
  open: (number: number) => void;
  csv: () => Promise<string>;
}

const HEIGHT = 300;
const nothing = () => null;

function describe(h: History, metric: string, part: Props["part"]): string {
  const where = part === null ? "" : `, from trial ${part[0]} to ${part[1]},`;
  const marked = h.marked === null ? "" : `; ${h.highlighted} ${h.highlighted === 1 ? "is" : "are"} highlighted`;
  const end = h.bestNumber === null ? "" : `; the best is ${sig(h.bestValue)}, trial ${h.bestNumber}`;
  return `${metric} of ${h.completed} completed trials against their number${where} and the best so far${end}${marked}. The table below has every value.`;
}

export function HistoryChart({ sweep, table, history, predictions, left, part, choosePart, open, csv }: Props) {
  const { name, goal } = sweep.metric;
  const plot = useRef<uPlot | null>(null);
  const state = useRef<Current>({ sweep, history, predictions, left, table, choosePart, open });
  state.current = { sweep, history, predictions, left, table, choosePart, open };
  const logY = history.log;
  const dim = history.marked !== null; // others than the highlighted trials
  const point = dim ? "--point-faint" : "--point";
  const many = history.x.length > 2000; // then uPlot's one path of all circles takes longer than a frame
  const size = many ? 3 : history.x.length > 500 ? 4.5 : 6;
  const data = useMemo<uPlot.AlignedData>(() => {
    // The line turns where a trial was the best; places without a value between cost nothing.
    const turns = history.best.map((v, i) => (history.steps[i] !== null || i === 0 || i === history.best.length - 1 ? v : undefined));
    const series = [turns, history.done, history.steps, logY ? positiveOnly(history.open) : history.open, history.infeasible];
    return [history.x, ...series];
  }, [history, logY, left, predictions]); // new data draws again, also what only the hooks draw

  const under: Extra = (s, g) => {
    drawLeft(s, g, state.current.left);
    drawWhiskers(s, g, state.current.predictions);
    if (many) s.stamps(state.current.history.x.map(g.x), state.current.history.done.map((v) => (v === null ? NaN : g.y(v))), 3, colour(point), false);
  };
  const over: Extra = (s, g) => {
    drawMarks(s, g, state.current.history, goal);
    drawHighlighted(s, g, state.current.history, goal);
  };

  const options = (): Options => ({
    scales: {
      x: { time: false, range: () => { const { x } = state.current.history; return part ? [part[0] - 0.6, part[1] + 0.6] : x.length === 0 ? [0, 10] : [x[0]! - 0.6, x.at(-1)! + 0.6]; } },
      y: logY ? { distr: 3 } : { range: (_u, min, max) => (min === null || max === null ? [0, 1] : uPlot.rangeNum(...withReach(state.current.left, min, max), 0.08, true)) },
    },
    axes: [
      wholeAxis("trial"),
      axis({ size: 56, values: tickText, ...(logY ? { splits: (_u, _axis, min, max) => numbersBetween({ min, max, log: true }) } : {}) }),
    ],
    series: [
      {},
      { label: "best so far", stroke: colour("--accent"), width: 2, paths: uPlot.paths.stepped?.({ align: 1 }), points: { show: false } },
      { label: name, paths: nothing, points: { show: !many, size, width: 0, fill: colour(point), stroke: colour(point) } },
      { label: "new best", paths: nothing, points: { show: true, size: dim ? size : 8, width: 0, fill: colour(dim ? point : "--accent"), stroke: colour(dim ? point : "--accent") } },
      { label: "not ended", paths: nothing, points: { show: true, size: 7, width: 1.5, fill: colour("--panel"), stroke: colour("--running") } },
      { label: "infeasible", paths: nothing, points: { show: false } },
    ],
    padding: [12, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: ring(), drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => { state.current.choosePart(null); return null; } } },
    hooks: { drawAxes: [(u) => drawInside(u, under)], draw: [(u) => drawInside(u, over)], setSelect: [onDrag((xs) => takePart(xs, state.current))] },
  });

  const label = describe(history, name, part);
  const looks = (): SeriesLook[] => [
    { line: "after", stroke: colour("--accent"), width: 2 },
    many ? {} : { dots: size / 2, stroke: colour(point) },
    dim ? { dots: size / 2, stroke: colour(point) } : { dots: 4, stroke: colour("--accent") },
    { dots: 3.5, stroke: colour("--panel"), ring: colour("--running") },
  ];
  const legend = (): [string, string][] => [["completed", colour(point)], ["best so far", colour("--accent")], ...(dim ? [["highlighted", colour("--text")] as [string, string]] : []), ...(openLabel(history) !== null ? [[openLabel(history)!, colour("--running")] as [string, string]] : [])];
  return (
    <>
      <Plot class="history" height={HEIGHT} data={data} deps={[logY, name, goal, size, many, dim, part?.[0], part?.[1]]} options={options}
        label={label} made={(u) => { plot.current = u; addTip(u, () => state.current); }} />
      <Downloads label={label} file={`${sweep.id}-history`} csv={csv} picture={() => (plot.current ? pictureOf(plot.current, looks(), legend(), under, over) : null)} />
    </>
  );
}

/** The value at a place; null: it has none, or lies beyond the edge. */
const valueIn = (h: History, i: number): number | null => h.done[i] ?? h.steps[i] ?? h.infeasible[i] ?? h.open[i] ?? null;

/** The part that was dragged over becomes the address; the chart follows it. */
function takePart([first, last]: [number, number], { choosePart }: Current): void {
  const [from, to] = [Math.ceil(first), Math.floor(last)];
  if (to > from) choosePart([Math.max(0, from), to]);
}

/** The drawn trials: their values, and the best so far. */
/** A ring around the point under the pointer: completed trials (series 2, 5) and those that run
 * (series 4). */
function ring(): uPlot.Cursor.Points {
  const size = (_: uPlot, series: number) => (series === 2 || series >= 4 ? 14 : 0);
  return { size, width: (_, __, px) => (px > 0 ? 2 : 0), fill: () => "transparent", stroke: () => colour("--accent") };
}

/** A scale of values, with the best that may still be reached, by the latest bound. If that is farther
 * away than the values are apart it would flatten them, and is left out. */
function withReach(left: Left, min: number, max: number): [number, number] {
  const reach = left.reach.at(-1);
  if (reach === undefined || reach < min - (max - min) || reach > max + (max - min)) return [min, max];
  return [Math.min(min, reach), Math.max(max, reach)];
}

/** From the best value to the best that may still be reached, as a band behind everything else, with a
 * dashed line at its far side. */
function drawLeft(s: Surface, g: Geometry, left: Left): void {
  const across = (i: number) => Math.round(i < left.x.length ? g.x(left.x[i]!) : g.right);
  left.x.forEach((_, i) => {
    const [best, reach] = [g.y(left.best[i]!), g.y(left.reach[i]!)];
    s.box(across(i), Math.min(best, reach), across(i + 1) - across(i), Math.abs(reach - best), colour("--accent-soft"), 1);
  });
  const ends = left.x.flatMap((_, i) => [across(i), across(i + 1)]);
  s.line(ends, left.reach.flatMap((v) => [g.y(v), g.y(v)]), colour("--accent"), 1, 1, true);
}

/** Mean and deviation of each prediction, below everything else. They are rectangles, because one path
 * of thousands of lines takes a fifth of a second. If there is no room for each of them, they form a
 * band behind the points, without the means. */
function drawWhiskers(s: Surface, g: Geometry, f: Foretold | null): void {
  if (!f) return;
  const room = f.x.length > 1 ? g.x(f.x[0]! + 1) - g.x(f.x[0]!) : g.right - g.left; // pixels for each trial
  const thick = Math.max(1, Math.min(1.25, room));
  const half = Math.min(3, room / 3);
  const fill = colour("--whisker");
  const alpha = 1 - 0.45 ** room; // all rectangles of one pixel together: 0.55
  f.x.forEach((n, i) => {
    const x = g.x(n);
    if (x < g.left || x > g.right) return;
    const [low, high] = [g.y(f.low[i] ?? 0), g.y(f.high[i] ?? 0)];
    s.box(x - thick / 2, high, thick, low - high, fill, alpha);
    if (room >= 3) s.box(x - half, g.y(f.mean[i] ?? 0) - thick / 2, 2 * half, thick, fill, alpha);
  });
}

/** Infeasible trials as crosses; failed trials as ticks on the lower edge; outliers as triangles on the
 * worse edge. */
function drawMarks(s: Surface, g: Geometry, h: History, goal: "minimize" | "maximize"): void {
  const bad = h.infeasible.flatMap((value, at) => (value === null ? [] : [{ x: g.x(h.x[at] ?? 0), y: g.y(value) }]));
  drawCrosses(s, bad.map((p) => p.x), bad.map((p) => p.y), h.x.length > 500 ? 2 : 3, colour("--infeasible"));
  for (const at of h.failed) s.box(g.x(h.x[at] ?? 0) - 1, g.bottom - 9, 2, 9, colour("--failed"), 1);
  const [edge, tip] = goal === "maximize" ? [g.bottom, g.bottom - 7] : [g.top, g.top + 7];
  for (const at of h.beyond) {
    const x = g.x(h.x[at] ?? 0);
    s.area([x - 4, x, x + 4], [tip, edge, tip], [tip, tip, tip], colour("--point"), 1);
  }
}

/** Highlighted trials above all others: a dot, or without a value that is drawn a mark at the edge. */
function drawHighlighted(s: Surface, g: Geometry, h: History, goal: "minimize" | "maximize"): void {
  const fill = colour("--accent");
  const failed = new Set(h.failed);
  const beyond = new Set(h.beyond);
  const far = goal === "maximize" ? g.bottom - 4 : g.top + 4;
  const [xs, ys]: [number[], number[]] = [[], []];
  for (const at of h.marked ?? []) {
    const value = valueIn(h, at);
    if (failed.has(at)) s.box(g.x(h.x[at]!) - 1.5, g.bottom - 12, 3, 12, colour("--text"), 1);
    else if (value !== null || beyond.has(at)) {
      xs.push(g.x(h.x[at]!));
      ys.push(value === null ? far : g.y(value));
    }
  }
  drawMarked(s, xs, ys, () => fill);
}

interface Current {
  sweep: Api.Sweep;
  table: Table;
  history: History;
  predictions: Foretold | null;
  left: Left;
  choosePart: Props["choosePart"];
  open: (number: number) => void;
}

/** The trial under the pointer: a box describes it, a click opens it. */
function addTip(u: uPlot, current: () => Current): void {
  const under = () => (typeof u.cursor.idx === "number" ? current().history.rows[u.cursor.idx] : undefined);
  tipOf(u, under, (row) => tipLines(row, current()), (row) => current().open(current().table.number[row]!));
}

function tipLines(row: number, { table, sweep }: Current): HTMLElement[] {
  const [mean, deviation] = ["predicted", "deviation"].map((of) => numberAt(table.column(`${of}:${sweep.metric.name}`), row));
  const extra: [string, string][] = typeof mean === "number" ? [["predicted", `${sig(mean)} ± ${sig(deviation ?? null, 2)}`]] : [];
  return trialLines(row, table, sweep, sig(numberAt(table.column("value"), row)), extra);
}
