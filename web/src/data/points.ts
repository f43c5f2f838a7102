/* The points of one metric of all trials of a sweep, and what a chart of all curves draws of them.
 * Jobs of the worker, which holds the points; the page gets lines in places between 0 and 1, and of
 * many lines a picture of how many pass where.
 *
 * The answer of GET /v1/sweeps/{sweep}/points has the columns `trial`, `step`, `time` (seconds since
 * its attempt began, NaN: unknown) and `value`, ascending by trial and step; a part has the lines of
 * the trials that changed, whole. */
import { axisBetween, placeOf, type Axis } from "../parts/scale_of";
import { readColumns } from "./columnar";
import { numberAt, wordAt, type Table } from "./columns";
import { Density, type Boxes } from "./density";
import { shownOf } from "./filter";
import { markOf } from "./marks";

/** The columns of an answer. */
interface PointColumns {
  step: Float64Array;
  time: Float64Array;
  value: Float64Array;
}

/** The points of one trial: a place in the columns of an answer. Arrays of its own for each of 100,000 lines would
 * take ten times the memory of their points. */
export class Line {
  readonly #of: PointColumns;
  readonly #from: number;
  readonly #to: number;

  constructor(of: PointColumns, from: number, to: number) {
    [this.#of, this.#from, this.#to] = [of, from, to];
  }

  get step(): Float64Array { return this.#of.step.subarray(this.#from, this.#to); }
  get time(): Float64Array { return this.#of.time.subarray(this.#from, this.#to); }
  get value(): Float64Array { return this.#of.value.subarray(this.#from, this.#to); }
}

export class Points {
  /** By trial. */
  readonly lines = new Map<number, Line>();
  version: string | null = null;

  /** Take an answer of the server. */
  take(buffer: ArrayBuffer): void {
    const file = readColumns(buffer);
    const column = (name: string) => {
      const found = file.columns.find((c) => c.name === name);
      if (found?.kind !== "number") throw new Error(`The points of the server cannot be read: there is no column '${name}'`);
      return found.values;
    };
    const trial = column("trial");
    const columns = { step: column("step"), time: column("time"), value: column("value") };
    if (file.whole) this.lines.clear();
    for (let from = 0; from < file.rows;) {
      let to = from + 1;
      while (to < file.rows && trial[to] === trial[from]) to++;
      this.lines.set(trial[from]!, new Line(columns, from, to));
      from = to;
    }
    this.version = file.version;
  }
}

export type Across = "step" | "time" | "clock";

export interface CurvesInput {
  metric: string;
  /** The version of the points that is drawn; a later one causes another run. */
  version: string;
  across: Across;
  logX: boolean;
  logY: boolean;
  /** The weight of the value before, 0 to below 1; 0: none. */
  smooth: number;
  goal: "minimize" | "maximize" | null;
  filter: string;
  brush: string;
  picked: string;
}

export interface Curve {
  number: number;
  state: string;
  /** Places of its points. */
  x: Float32Array;
  y: Float32Array;
  last: { at: number; value: number };
}

export interface Curves {
  /** All with a point that is shown. */
  count: number;
  stopped: number;
  x: Axis;
  y: Axis;
  /** Those that are drawn as lines: stopped and other faint ones first, the best and the highlighted
   * ones last. */
  curves: Curve[];
  /** The index of the first one that is drawn in full. */
  strong: number;
  /** How many pass where, if they are too many for lines. */
  density: Boxes | null;
  marked: number | null;
  /** Whether any point has no time. */
  timeless: boolean;
  /** Values or places that the axis cannot show. */
  hidden: number;
}

const HOUR_MS = 3_600_000;
const MOST_LINES = 400;
const MOST_STRONG = 60; // of highlighted ones beside a density
const CELLS_ACROSS = 320;
const CELLS_UP = 140;
const TAIL = 0.02; // of the values, those farthest from the goal, lie beyond the edge

/** The moving average with exponential weights, without the pull of its first value (Adam's
 * correction). A value that is not finite is passed over. */
export function smoothed(values: Float64Array, weight: number): Float64Array {
  if (weight <= 0) return values;
  const out = new Float64Array(values.length);
  let [sum, norm] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    const v = values[i]!;
    if (Number.isFinite(v)) [sum, norm] = [weight * sum + (1 - weight) * v, weight * norm + (1 - weight)];
    out[i] = Number.isFinite(v) ? sum / norm : NaN;
  }
  return out;
}

/** The x of a trial's points; NaN: unknown. */
function placesAlong(line: Line, across: Across, sinceFirstMs: number): Float64Array {
  if (across === "step") return line.step;
  if (across === "time") return line.time;
  return line.time.map((t) => (sinceFirstMs + 1000 * t) / HOUR_MS);
}

interface Chosen {
  number: number;
  state: string;
  x: Float64Array;
  y: Float64Array;
  marked: boolean;
}

/** What is drawn of the points, in numbers. */
function chosenOf(points: Points, table: Table, input: CurvesInput): { all: Chosen[]; marked: number | null; timeless: boolean } {
  const shown = shownOf(input.filter, table);
  const mark = markOf(table, input.brush, input.picked, shown);
  const started = table.column("started_at");
  let first = Infinity;
  if (started?.kind === "number") for (const t of started.values) if (t < first) first = t;
  const all: Chosen[] = [];
  let [marked, timeless] = [0, false];
  for (const [number, line] of points.lines) {
    const row = table.rowOf(number);
    if (row < 0 || (shown !== null && shown[row] === 0)) continue;
    const x = placesAlong(line, input.across, (numberAt(started, row) ?? NaN) - first);
    timeless ||= line.time.some((t) => Number.isNaN(t));
    const isMarked = mark !== null && mark.rows[row] === 1;
    marked += Number(isMarked);
    all.push({ number, state: wordAt(table.state, row) ?? "", x, y: smoothed(line.value, input.smooth), marked: isMarked });
  }
  return { all, marked: mark ? marked : null, timeless };
}

/** The least and the greatest value that the axes show. Of y, the worst of many values are left out. */
function boundsOf(all: readonly Chosen[], { logX, logY, goal }: CurvesInput): { x: [number, number]; y: [number, number]; hidden: number } {
  let n = 0;
  for (const c of all) n += c.y.length;
  const ys = new Float64Array(n);
  let [lowX, highX, hidden] = [Infinity, -Infinity, 0];
  n = 0;
  for (const { x, y } of all) {
    for (let i = 0; i < y.length; i++) {
      if (!Number.isFinite(x[i]!) || !Number.isFinite(y[i]!) || (logX && x[i]! <= 0) || (logY && y[i]! <= 0)) { hidden++; continue; }
      if (x[i]! < lowX) lowX = x[i]!;
      if (x[i]! > highX) highX = x[i]!;
      ys[n++] = y[i]!;
    }
  }
  const sorted = ys.subarray(0, n).sort();
  const at = (q: number) => sorted[Math.min(n - 1, Math.max(0, Math.round(q * (n - 1))))] ?? NaN;
  const cut = n >= 50 && !logY ? TAIL : 0;
  const [least, most] = [at(goal === "maximize" ? cut : 0), at(goal === "minimize" ? 1 - cut : 1)];
  // A tail is only cut if it is long: else all is shown.
  const [low, high] = [at(0), at(1)];
  const isLong = high - low > 3 * (most - least);
  return { x: [lowX, highX], y: isLong ? [least, most] : [low, high], hidden };
}

const NAMES: Record<Across, string> = { step: "step", time: "seconds since its attempt began", clock: "hours since the first attempt began" };

export function curvesOf(points: Points, table: Table, input: CurvesInput): Curves {
  const { all, marked, timeless } = chosenOf(points, table, input);
  const bounds = boundsOf(all, input);
  const x = axisBetween(NAMES[input.across], ...bounds.x, input.logX);
  const y = axisBetween(input.metric, ...bounds.y, input.logY);
  const isStopped = (c: Chosen) => c.state === "pruned" || c.state === "cancelled" || c.state === "failed";
  const last = (c: Chosen) => { const v = c.y[c.y.length - 1]!; return Number.isFinite(v) ? v : input.goal === "maximize" ? -Infinity : Infinity; };
  // From those that matter least to those that matter most: stopped ones, the others from worst to best.
  const sign = input.goal === "maximize" ? -1 : 1;
  const order = [...all].sort((a, b) => Number(a.marked) - Number(b.marked) || Number(isStopped(b)) - Number(isStopped(a)) || sign * (last(b) - last(a)) || b.number - a.number);
  const dense = order.length > MOST_LINES;
  const isStrong = (c: Chosen) => (marked !== null ? c.marked : !isStopped(c));
  let drawn = order;
  if (dense) drawn = marked !== null ? order.filter((c) => c.marked).slice(-MOST_STRONG) : order.slice(-1);
  const density = dense ? densityOf(order, x, y) : null;
  const curves = drawn.map((c): Curve => ({ number: c.number, state: c.state, x: Float32Array.from(c.x, (v) => placeOf(x, v)), y: Float32Array.from(c.y, (v) => placeOf(y, v)), last: { at: c.x[c.x.length - 1]!, value: c.y[c.y.length - 1]! } }));
  const firstStrong = drawn.findIndex(isStrong);
  return { count: all.length, stopped: all.filter(isStopped).length, x, y, curves, strong: dense ? 0 : firstStrong < 0 ? curves.length : firstStrong, density, marked, timeless, hidden: bounds.hidden };
}

function densityOf(all: readonly Chosen[], x: Axis, y: Axis): Boxes {
  const density = new Density(CELLS_ACROSS, CELLS_UP);
  for (const c of all) {
    let [px, py] = [NaN, NaN];
    for (let i = 0; i < c.x.length; i++) {
      const [qx, qy] = [placeOf(x, c.x[i]!) * CELLS_ACROSS, placeOf(y, c.y[i]!) * CELLS_UP];
      if (!Number.isFinite(qx + qy)) continue;
      if (c.x.length === 1) density.line(qx, qy, Math.min(qx + 1, CELLS_ACROSS), qy, 0);
      else density.line(px, py, qx, qy, 0);
      [px, py] = [qx, qy];
    }
  }
  return density.boxes();
}
