/* Trials in the plane of two objectives: the front joined by steps, the others faint, infeasible
 * ones as crosses. */
import { useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type * as Api from "../api/types";
import { numberAt, type Table } from "../data/columns";
import { count, sig } from "../format";
import { colour } from "../theme";
import { csvOf } from "./csv";
import { Downloads } from "./downloads";
import { drawable, edgeOf } from "./history";
import { metricColumn } from "./objectives";
import { axis, Plot, tickText, type Options } from "./plot";
import { drawCrosses, drawInside, pictureOf, type Extra, type SeriesLook } from "./plot_picture";
import { tipOf, trialLines } from "./tip";

const HEIGHT = 320;
const REACH_PX = 24; // how near the pointer must be to a point
const nothing = () => null;

interface Dot {
  row: number;
  x: number;
  y: number;
  kind: "front" | "other" | "infeasible";
}

interface Props {
  sweep: Api.Sweep;
  table: Table;
  /** The numbers of the trials of the front. */
  front: ReadonlySet<number>;
  /** Leave out outliers. */
  clip: boolean;
  x: Api.Objective;
  y: Api.Objective;
  open: (number: number) => void;
}

/** Completed trials that have both values, from left to right. */
function dotsOf(table: Table, front: ReadonlySet<number>, x: string, y: string): Dot[] {
  const dots: Dot[] = [];
  const [cx, cy, bad] = [metricColumn(table, x), metricColumn(table, y), table.column("infeasible")];
  const completed = table.state.words.indexOf("completed");
  for (let row = 0; row < table.n; row++) {
    const [vx, vy] = [drawable(numberAt(cx, row)), drawable(numberAt(cy, row))];
    if (table.state.values[row] !== completed || vx === null || vy === null) continue;
    dots.push({ row, x: vx, y: vy, kind: front.has(table.number[row]!) ? "front" : numberAt(bad, row) === 1 ? "infeasible" : "other" });
  }
  return dots.sort((a, b) => a.x - b.x || a.y - b.y);
}

/** The points without outliers in either objective, by the rule of the history chart. Points of the
 * front always stay. */
function near(dots: readonly Dot[], x: Api.Objective, y: Api.Objective): readonly Dot[] {
  const [sx, sy] = [x, y].map((m) => (m.goal === "minimize" ? 1 : -1)) as [number, number];
  const [ex, ey] = [edgeOf(dots.map((d) => d.x), sx), edgeOf(dots.map((d) => d.y), sy)];
  return dots.filter((d) => d.kind === "front" || (d.x * sx <= ex && d.y * sy <= ey));
}

export function Scatter({ sweep, table, front, clip, x, y, open }: Props) {
  const all = useMemo(() => dotsOf(table, front, x.name, y.name), [table, front, x.name, y.name]);
  const dots = useMemo(() => (clip ? near(all, x, y) : all), [all, clip]);
  const plot = useRef<uPlot | null>(null);
  const state = useRef({ sweep, table, dots, open });
  state.current = { sweep, table, dots, open };
  const data = useMemo<uPlot.AlignedData>(() => {
    const only = (kind: Dot["kind"]) => dots.map((d) => (d.kind === kind ? d.y : null));
    return [dots.map((d) => d.x), only("other"), only("infeasible"), only("front")];
  }, [dots]);
  // A step between two points of the front shows what is known to be reachable. With more than two
  // objectives the points are not joined.
  const joined = sweep.metrics.length === 2;
  const size = dots.length > 2000 ? 3 : dots.length > 500 ? 4.5 : 6;
  const range = (_u: uPlot, min: number | null, max: number | null): uPlot.Range.MinMax => (min === null || max === null ? [0, 1] : uPlot.rangeNum(min, max, 0.08, true));

  const over: Extra = (s, g) => {
    const bad = state.current.dots.filter((d) => d.kind === "infeasible");
    drawCrosses(s, bad.map((d) => g.x(d.x)), bad.map((d) => g.y(d.y)), 3, colour("--infeasible"));
  };
  const looks = (): SeriesLook[] => [
    { dots: size / 2, stroke: colour("--point-faint") },
    {},
    { dots: 4, stroke: colour("--accent"), width: 1.5, ...(joined ? { line: x.goal === "minimize" ? "after" as const : "before" as const } : {}) },
  ];
  const csv = () => csvOf(["trial", x.name, y.name, "kind"], all.map((d) => [table.number[d.row]!, d.x, d.y, d.kind === "other" ? "beaten" : d.kind]));

  const options = (): Options => ({
    scales: { x: { time: false, range }, y: { range } },
    axes: [axis({ label: `${x.name} (${x.goal})`, size: 28, values: tickText }), axis({ label: `${y.name} (${y.goal})`, size: 56, values: tickText })],
    series: [
      {},
      { label: "beaten", paths: nothing, points: { show: true, size, width: 0, fill: colour("--point-faint"), stroke: colour("--point-faint") } },
      { label: "infeasible", paths: nothing, points: { show: false } },
      {
        label: "front", stroke: colour("--accent"), width: 1.5, spanGaps: true, points: { show: true, size: 8, width: 0, fill: colour("--accent"), stroke: colour("--accent") },
        paths: (joined && uPlot.paths.stepped?.({ align: x.goal === "minimize" ? 1 : -1 })) || nothing,
      },
    ],
    padding: [12, 12, 0, 0],
    legend: { show: false },
    cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
    hooks: { draw: [(u) => drawInside(u, over)] },
  });
  const onFront = dots.filter((d) => d.kind === "front").length;
  const label = `${y.name} (${y.goal}) against ${x.name} (${x.goal}) of ${all.length} completed trials, ${onFront} of them on the front. The list has the front's values.`;
  return (
    <div class="scatter">
      <Plot class="history" height={HEIGHT} data={data} deps={[x.name, y.name, x.goal, joined, size]} options={options} label={label} made={(u) => { plot.current = u; addTip(u, () => state.current); }} />
      <Downloads label={label} file={`${sweep.id}-front`} csv={csv} picture={() => (plot.current ? pictureOf(plot.current, looks(), [["on the front", colour("--accent")], ["beaten", colour("--point-faint")]], () => undefined, over) : null)} />
      {all.length > dots.length && <p class="note">{count(all.length - dots.length)} off the scale, far from the rest.</p>}
    </div>
  );
}

interface Current {
  sweep: Api.Sweep;
  table: Table;
  dots: readonly Dot[];
  open: (number: number) => void;
}

/** The point nearest to the pointer gets a ring and a box. */
function addTip(u: uPlot, current: () => Current): void {
  const ring = document.createElement("div");
  ring.className = "ring";
  ring.hidden = true;
  u.over.appendChild(ring);
  const nearest = (): Dot | undefined => {
    const [left, top] = [u.cursor.left ?? -1, u.cursor.top ?? -1];
    let [found, least]: [Dot | undefined, number] = [undefined, REACH_PX ** 2];
    for (const d of left < 0 ? [] : current().dots) {
      const far = (u.valToPos(d.x, "x") - left) ** 2 + (u.valToPos(d.y, "y") - top) ** 2;
      if (far < least) [found, least] = [d, far];
    }
    return found;
  };
  const under = (): Dot | undefined => {
    const d = nearest();
    ring.hidden = d === undefined;
    if (d) [ring.style.left, ring.style.top] = [`${u.valToPos(d.x, "x")}px`, `${u.valToPos(d.y, "y")}px`];
    return d;
  };
  const values = (d: Dot): [string, string][] => current().sweep.metrics.map((m) => [m.name, sig(numberAt(metricColumn(current().table, m.name), d.row))]);
  tipOf(u, under, (d) => trialLines(d.row, current().table, current().sweep, d.kind === "front" ? "on the front" : "", values(d)), (d) => current().open(current().table.number[d.row]!));
}
