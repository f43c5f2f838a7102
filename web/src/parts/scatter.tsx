/* Trials in the plane of two objectives: the front joined by steps, the others faint, infeasible
 * ones as crosses. The worker computes what is drawn (data/plane.ts). */
import { useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type * as Api from "../api/types";
import { numberAt, type Table } from "../data/columns";
import { BEATEN, FRONT, INFEASIBLE, type Plane } from "../data/plane";
import type { Range } from "../data/selection";
import { count, sig } from "../format";
import { colour } from "../theme";
import { Downloads } from "./downloads";
import { metricColumn } from "./objectives";
import { axis, onDrag, Plot, tickText, type Options } from "./plot";
import { drawCrosses, drawInside, drawMarked, pictureOf, type Extra, type Geometry, type SeriesLook } from "./plot_picture";
import type { Surface } from "./surface";
import { tipOf, trialLines } from "./tip";

const HEIGHT = 320;
const REACH_PX = 24; // how near the pointer must be to a point
const MANY = 2000;
const nothing = () => null;

interface Props {
  sweep: Api.Sweep;
  table: Table;
  plane: Plane;
  x: Api.Objective;
  y: Api.Objective;
  csv: () => Promise<string>;
  /** A box that was dragged: the ranges of both objectives. */
  brush: (x: Range, y: Range) => void;
  open: (number: number) => void;
}

/** The points of one kind; null in place of the others. */
const pointsOf = ({ y, kind: kinds }: Plane, kind: number): (number | null)[] => Array.from(y, (v, i) => (kinds[i] === kind ? v : null));

export function Scatter({ sweep, table, plane, x, y, csv, brush, open }: Props) {
  const plot = useRef<uPlot | null>(null);
  const state = useRef<Current>({ sweep, table, plane, brush, open });
  state.current = { sweep, table, plane, brush, open };
  const data = useMemo<uPlot.AlignedData>(() => [Array.from(plane.x), pointsOf(plane, BEATEN), pointsOf(plane, FRONT)], [plane]);
  // A step between two points of the front shows what is known to be reachable. With more than two
  // objectives the points are not joined.
  const joined = sweep.metrics.length === 2;
  const many = plane.x.length > MANY; // as in the history
  const size = many ? 3 : plane.x.length > 500 ? 4.5 : 6;
  const range = (_u: uPlot, min: number | null, max: number | null): uPlot.Range.MinMax => (min === null || max === null ? [0, 1] : uPlot.rangeNum(min, max, 0.08, true));
  const under: Extra = (s, g) => {
    const { x: xs, y: ys, kind } = state.current.plane;
    if (many) s.stamps(xs.map(g.x), ys.map((v, i) => (kind[i] === BEATEN ? g.y(v) : NaN)), 3, colour("--point-faint"), false);
  };
  const over: Extra = (s, g) => drawOver(s, g, state.current.plane);
  const looks = (): SeriesLook[] => [
    many ? {} : { dots: size / 2, stroke: colour("--point-faint") },
    { dots: 4, stroke: colour("--accent"), width: 1.5, ...(joined ? { line: x.goal === "minimize" ? "after" as const : "before" as const } : {}) },
  ];

  const options = (): Options => ({
    scales: { x: { time: false, range }, y: { range } },
    axes: [axis({ label: `${x.name} (${x.goal})`, size: 28, values: tickText }), axis({ label: `${y.name} (${y.goal})`, size: 56, values: tickText })],
    series: [
      {},
      { label: "beaten", paths: nothing, points: { show: !many, size, width: 0, fill: colour("--point-faint"), stroke: colour("--point-faint") } },
      {
        label: "front", stroke: colour("--accent"), width: 1.5, spanGaps: true, points: { show: true, size: 8, width: 0, fill: colour("--accent"), stroke: colour("--accent") },
        paths: (joined && uPlot.paths.stepped?.({ align: x.goal === "minimize" ? 1 : -1 })) || nothing,
      },
    ],
    padding: [12, 12, 0, 0],
    legend: { show: false },
    cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: true, setScale: false } },
    hooks: { drawAxes: [(u) => drawInside(u, under)], draw: [(u) => drawInside(u, over)], setSelect: [onDrag((xs, ys) => state.current.brush(rangeOf(xs), rangeOf(ys)))] },
  });
  const marked = plane.highlighted === null ? "" : ` ${plane.highlighted} ${plane.highlighted === 1 ? "is" : "are"} highlighted.`;
  const label = `${y.name} (${y.goal}) against ${x.name} (${x.goal}) of ${plane.count} completed trials, ${plane.onFront} of them on the front.${marked} The list has the front's values.`;
  const legend = (): [string, string][] => [["on the front", colour("--accent")], ["beaten", colour("--point-faint")], ...(plane.highlighted === null ? [] : [["highlighted", colour("--text")] as [string, string]])];
  return (
    <div class="scatter">
      <Plot class="history" height={HEIGHT} data={data} deps={[x.name, y.name, x.goal, joined, size]} options={options} label={label} made={(u) => { plot.current = u; addTip(u, () => state.current); }} />
      <Downloads label={label} file={`${sweep.id}-front`} csv={csv} picture={() => (plot.current ? pictureOf(plot.current, looks(), legend(), under, over) : null)} />
      <p class="note kept">{plane.off > 0 && `${count(plane.off)} off the scale, far from the rest.`}</p>
    </div>
  );
}

/** Infeasible trials as crosses, and what is highlighted above all others. */
function drawOver(s: Surface, g: Geometry, { x, y, kind, marked }: Plane): void {
  const bad: [number[], number[]] = [[], []];
  kind.forEach((k, i) => {
    if (k !== INFEASIBLE) return;
    bad[0].push(g.x(x[i]!));
    bad[1].push(g.y(y[i]!));
  });
  drawCrosses(s, ...bad, 3, colour("--infeasible"));
  const fills = [colour("--point"), colour("--infeasible"), colour("--accent")];
  const strong = Array.from(marked.keys()).filter((i) => marked[i] === 1);
  drawMarked(s, strong.map((i) => g.x(x[i]!)), strong.map((i) => g.y(y[i]!)), (at) => fills[kind[strong[at]!]!]!);
}

/** Every view follows it. */
const rangeOf = (ends: [number, number]): Range => ({ min: rounded(Math.min(...ends)), max: rounded(Math.max(...ends)) });
const rounded = (v: number): number => Number(v.toPrecision(6));

interface Current {
  sweep: Api.Sweep;
  table: Table;
  plane: Plane;
  brush: Props["brush"];
  open: (number: number) => void;
}

/** The point nearest to the pointer gets a ring and a box. */
function addTip(u: uPlot, current: () => Current): void {
  const ring = document.createElement("div");
  ring.className = "ring";
  ring.hidden = true;
  u.over.appendChild(ring);
  const nearest = (): number | undefined => {
    const [left, top] = [u.cursor.left ?? -1, u.cursor.top ?? -1];
    let [found, least]: [number | undefined, number] = [undefined, REACH_PX ** 2];
    const { x, y } = current().plane;
    for (let i = 0; left >= 0 && i < x.length; i++) {
      const far = (u.valToPos(x[i]!, "x") - left) ** 2 + (u.valToPos(y[i]!, "y") - top) ** 2;
      if (far < least) [found, least] = [i, far];
    }
    return found;
  };
  const under = (): number | undefined => {
    const at = nearest();
    const { x, y } = current().plane;
    ring.hidden = at === undefined;
    if (at !== undefined) [ring.style.left, ring.style.top] = [`${u.valToPos(x[at]!, "x")}px`, `${u.valToPos(y[at]!, "y")}px`];
    return at;
  };
  const rowAt = (at: number) => current().plane.row[at]!;
  const lines = (at: number) => {
    const { sweep, table, plane } = current();
    const values = sweep.metrics.map((m): [string, string] => [m.name, sig(numberAt(metricColumn(table, m.name), rowAt(at)))]);
    return trialLines(rowAt(at), table, sweep, plane.kind[at] === FRONT ? "on the front" : "", values);
  };
  tipOf(u, under, lines, (at) => current().open(current().table.number[rowAt(at)]!));
}
