/* The chart of a sweep: every completed trial's value and the best so far, against the trial's
 * number. */
import { useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type * as Api from "../api/types";
import { numberAt, type Table } from "../data/columns";
import { sig } from "../format";
import { colour } from "../theme";
import { positiveOnly, type Foretold, type History, type Left } from "./history";
import { axis, Plot, tickText, wholeAxis, type Options } from "./plot";
import { tipOf, trialLines } from "./tip";

interface Props {
  sweep: Api.Sweep;
  table: Table;
  history: History;
  /** The prediction of each trial; null: none is drawn. */
  predictions: Foretold | null;
  left: Left;
  open: (number: number) => void;
}

const HEIGHT = 300;
const nothing = () => null;

function describe(h: History, metric: string): string {
  const end = h.bestNumber === null ? "" : `; the best is ${sig(h.bestValue)}, trial ${h.bestNumber}`;
  return `${metric} of ${h.completed} completed trials against their number, and the best so far${end}. The table below has every value.`;
}

export function HistoryChart({ sweep, table, history, predictions, left, open }: Props) {
  const { name, goal } = sweep.metric;
  const state = useRef<Current>({ sweep, history, predictions, left, table, open });
  state.current = { sweep, history, predictions, left, table, open };
  const logY = history.log;
  const size = table.n > 2000 ? 3 : table.n > 500 ? 4.5 : 6;
  const data = useMemo<uPlot.AlignedData>(() => {
    const series = [history.best, history.done, history.steps, logY ? positiveOnly(history.open) : history.open, history.infeasible];
    return [history.x, ...series];
  }, [history, logY]);

  const options = (): Options => ({
    scales: {
      x: { time: false, range: (_u, min, max) => (min === null || max === null ? [0, 10] : [min - 0.6, max + 0.6]) },
      y: logY ? { distr: 3 } : { range: (_u, min, max) => (min === null || max === null ? [0, 1] : uPlot.rangeNum(min, max, 0.08, true)) },
    },
    axes: [
      wholeAxis("trial"),
      axis({ size: 56, values: tickText }),
    ],
    series: [
      {},
      { label: "best so far", stroke: colour("--accent"), width: 2, paths: uPlot.paths.stepped?.({ align: 1 }), points: { show: false } },
      { label: name, paths: nothing, points: { show: true, size, width: 0, fill: colour("--point"), stroke: colour("--point") } },
      { label: "new best", paths: nothing, points: { show: true, size: 8, width: 0, fill: colour("--accent"), stroke: colour("--accent") } },
      { label: "not ended", paths: nothing, points: { show: true, size: 7, width: 1.5, fill: colour("--panel"), stroke: colour("--running") } },
      { label: "infeasible", paths: nothing, points: { show: false } },
    ],
    padding: [12, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: ring(), drag: { x: true, y: false } },
    hooks: { drawAxes: [(u) => drawLeft(u, state.current.left), (u) => drawWhiskers(u, state.current.predictions)], draw: [(u) => drawMarks(u, state.current.history, goal)] },
  });

  return (
    <Plot class="history" height={HEIGHT} data={data} deps={[logY, name, goal, size, predictions !== null, left]} options={options}
      label={describe(history, name)} made={(u) => addTip(u, () => state.current)} />
  );
}

/** A ring around the point under the pointer: completed trials (series 2, 5) and those that run
 * (series 4). */
function ring(): uPlot.Cursor.Points {
  const size = (_: uPlot, series: number) => (series === 2 || series >= 4 ? 14 : 0);
  return { size, width: (_, __, px) => (px > 0 ? 2 : 0), fill: () => "transparent", stroke: () => colour("--accent") };
}

/** From the best value to the best that may still be reached, as a band behind everything else, with a
 * dashed line at its far side. It is not part of the scale: early bounds are wide, and would flatten
 * the values. */
function drawLeft(u: uPlot, left: Left): void {
  const { ctx, bbox } = u;
  const px = devicePixelRatio;
  // A value at or below zero is below any logarithmic axis.
  const place = (v: number) => (u.scales["y"]?.distr === 3 && v <= 0 ? bbox.top + bbox.height : u.valToPos(v, "y", true));
  const across = (i: number) => (i < left.x.length ? u.valToPos(left.x[i]!, "x", true) : bbox.left + bbox.width);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour("--accent-soft");
  left.x.forEach((_, i) => {
    const [best, reach] = [place(left.best[i]!), place(left.reach[i]!)];
    ctx.fillRect(across(i), Math.min(best, reach), across(i + 1) - across(i), Math.abs(reach - best));
  });
  ctx.beginPath();
  left.x.forEach((_, i) => {
    ctx.lineTo(across(i), place(left.reach[i]!));
    ctx.lineTo(across(i + 1), place(left.reach[i]!));
  });
  ctx.setLineDash([4 * px, 3 * px]);
  ctx.strokeStyle = colour("--accent");
  ctx.lineWidth = px;
  ctx.stroke();
  ctx.restore();
}

/** Mean and deviation of each prediction, below everything else and clipped to the frame. They are
 * rectangles, because one path of thousands of lines takes a fifth of a second. If there is no room
 * for each of them, they form a band behind the points, without the means. */
function drawWhiskers(u: uPlot, f: Foretold | null): void {
  if (!f) return;
  const { ctx, bbox } = u;
  const px = devicePixelRatio;
  const [min, max] = [u.scales["x"]?.min ?? 0, u.scales["x"]?.max ?? 0];
  // A value at or below zero is below any logarithmic axis.
  const place = (v: number) => (u.scales["y"]?.distr === 3 && v <= 0 ? bbox.top + bbox.height : u.valToPos(v, "y", true));
  const room = u.over.clientWidth / Math.max(1, max - min); // pixels for each trial
  const thick = Math.max(1, Math.min(1.25, room)) * px;
  const half = Math.min(3, room / 3) * px;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour("--whisker");
  ctx.globalAlpha = 1 - 0.45 ** room; // all rectangles of one pixel together: 0.55
  f.x.forEach((n, i) => {
    if (n < min || n > max) return;
    const x = u.valToPos(n, "x", true);
    const [low, high] = [place(f.low[i] ?? 0), place(f.high[i] ?? 0)];
    ctx.fillRect(x - thick / 2, high, thick, low - high);
    if (room >= 3) ctx.fillRect(x - half, place(f.mean[i] ?? 0) - thick / 2, 2 * half, thick);
  });
  ctx.restore();
}

/** Infeasible trials, as crosses. */
function drawCrosses(u: uPlot, h: History): void {
  const { ctx } = u;
  const px = devicePixelRatio;
  const arm = (h.x.length > 500 ? 2 : 3.2) * px;
  ctx.beginPath();
  h.infeasible.forEach((value, at) => {
    const x = u.valToPos(h.x[at] ?? 0, "x", true);
    if (value === null || x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
    const y = u.valToPos(value, "y", true);
    ctx.moveTo(x - arm, y - arm);
    ctx.lineTo(x + arm, y + arm);
    ctx.moveTo(x - arm, y + arm);
    ctx.lineTo(x + arm, y - arm);
  });
  ctx.strokeStyle = colour("--infeasible");
  ctx.lineWidth = 1.5 * px;
  ctx.stroke();
}

/** Infeasible trials; failed trials as ticks on the lower edge; outliers as triangles on the worse
 * edge. */
function drawMarks(u: uPlot, h: History, goal: "minimize" | "maximize"): void {
  const { ctx, bbox } = u;
  const px = devicePixelRatio;
  const place = (at: number) => u.valToPos(h.x[at] ?? 0, "x", true);
  const inside = (x: number) => x >= bbox.left && x <= bbox.left + bbox.width;
  ctx.save();
  drawCrosses(u, h);
  ctx.fillStyle = colour("--failed");
  for (const at of h.failed) {
    const x = place(at);
    if (inside(x)) ctx.fillRect(x - px, bbox.top + bbox.height - 9 * px, 2 * px, 9 * px);
  }
  ctx.fillStyle = colour("--point");
  const down = goal === "maximize";
  const edge = down ? bbox.top + bbox.height : bbox.top;
  const tip = (down ? -1 : 1) * 7 * px;
  for (const at of h.beyond) {
    const x = place(at);
    if (!inside(x)) continue;
    ctx.beginPath();
    ctx.moveTo(x, edge);
    ctx.lineTo(x - 4 * px, edge + tip);
    ctx.lineTo(x + 4 * px, edge + tip);
    ctx.fill();
  }
  ctx.restore();
}

interface Current {
  sweep: Api.Sweep;
  table: Table;
  history: History;
  predictions: Foretold | null;
  left: Left;
  open: (number: number) => void;
}

/** The trial under the pointer: a box describes it, a click opens it. */
function addTip(u: uPlot, current: () => Current): void {
  const under = () => (typeof u.cursor.idx === "number" ? current().history.rows[u.cursor.idx] : undefined);
  tipOf(u, under, (row) => tipLines(row, current()), (row) => current().open(current().table.number[row]!));
}

function tipLines(row: number, { table, sweep, predictions: p }: Current): HTMLElement[] {
  const at = p ? p.x.indexOf(table.number[row]!) : -1;
  const extra: [string, string][] = p && at >= 0 ? [["predicted", `${sig(p.mean[at]!)} ± ${sig(p.high[at]! - p.mean[at]!, 2)}`]] : [];
  return trialLines(row, table, sweep, sig(numberAt(table.column("value"), row)), extra);
}
