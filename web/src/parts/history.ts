/* Computes what the chart of a sweep draws. Pure, so that it is easy to test.
 *
 * One diverged trial with a huge value would flatten all others. So values beyond the worse
 * quartile by more than REACH interquartile ranges are drawn at the edge. If many values are far
 * from the best, the axis is logarithmic unless the user chose otherwise. */
import type * as Api from "../api/types";
import { numberAt, wordAt, type Table } from "../data/columns";
import { shownOf } from "../data/filter";
import { markOf } from "../data/marks";
import { csvOf } from "./csv";

const REACH = 4;
const FEWEST_TO_JUDGE = 8;
const WIDE = 10;

/** What the chart draws. Of many trials, one is drawn for each place of a fine grid; all figures are
 * of all trials. */
export interface History {
  /** Rows that are drawn, ascending, and their trial numbers; for each of them … */
  rows: number[];
  x: number[];
  /** … the value of a completed trial that keeps the bounds, … */
  done: (number | null)[];
  /** … of a completed trial that does not, … */
  infeasible: (number | null)[];
  /** … the latest value of one that has not ended, … */
  open: (number | null)[];
  /** … the best value of all completed, feasible trials up to this number, … */
  best: (number | null)[];
  /** … the value of such a trial that was better than all before it. */
  steps: (number | null)[];
  /** Places in `x` of completed trials whose value is not drawn: beyond the edge. */
  beyond: number[];
  failed: number[];
  /** All completed trials with a value that pass the filter; those of them that are far from the rest. */
  completed: number;
  far: number;
  /** Places in `x` of highlighted trials; null: nothing is highlighted. */
  marked: number[] | null;
  /** How many trials are highlighted, of those that pass the filter and lie between `from` and `to`. */
  highlighted: number;
  /** The numbers of the first and the last trial that passes the filter. */
  first: number;
  last: number;
  isInfeasible: boolean;
  isRunning: boolean;
  /** Trials wait at a rung; they are drawn as those that run. */
  isPaused: boolean;
  /** The best completed, feasible trial. */
  bestNumber: number | null;
  bestValue: number | null;
  /** Whether every value is above zero, so that the axis can be logarithmic; whether the values span
   * so much that it should be; whether it is. */
  positive: boolean;
  wide: boolean;
  log: boolean;
  /** Outliers are drawn at the edge. */
  clip: boolean;
}

export interface HistoryInput {
  goal: "minimize" | "maximize";
  /** The user's choice of the axis; "auto": by the values. */
  y: "auto" | "log" | "linear";
  /** Draw outliers where they are. */
  far: boolean;
  /** Only trials that pass this are drawn and counted. */
  filter: string;
  brush: string;
  picked: string;
  /** The part that is drawn, numbers of trials; null: from the first, to the last. */
  from: number | null;
  to: number | null;
}

/** The worst value that is still drawn: Infinity when no value lies far from the rest. `sign` is 1
 * to minimize. */
export function edgeOf(values: ArrayLike<number>, sign: number): number {
  return edgeOfSorted(new Float64Array(values).sort(), sign);
}

function edgeOfSorted(sorted: Float64Array, sign: number): number {
  if (sorted.length < FEWEST_TO_JUDGE) return Infinity;
  const cost = sign > 0 ? sorted : sorted.map((v) => -v).reverse();
  const at = (q: number) => cost[Math.floor(q * (cost.length - 1))] ?? 0;
  const spread = at(0.75) - at(0.25);
  const edge = at(0.75) + REACH * spread;
  return spread > 0 && (cost[cost.length - 1] ?? 0) > edge ? edge : Infinity;
}

/** Whether values to be minimized span so much that a linear axis would hide the good ones. */
export const spansDecades = (values: ArrayLike<number>): boolean => spansInOrder(new Float64Array(values).sort());

function spansInOrder(sorted: Float64Array): boolean {
  const [best = 0, most = 0] = [sorted[0], sorted[Math.floor(0.9 * (sorted.length - 1))]];
  return sorted.length >= FEWEST_TO_JUDGE && best > 0 && most > WIDE * best;
}

/** Whether a number can be drawn. */
export const drawable = (v: number | null): number | null => (v !== null && Number.isFinite(v) ? v : null);

/** The predictions of an objective: trial number, mean minus deviation, mean, mean plus deviation. */
export interface Foretold {
  x: number[];
  low: number[];
  mean: number[];
  high: number[];
}

export interface ForetoldInput {
  metric: string;
  filter: string;
  from: number | null;
  to: number | null;
}

const MOST_FORETOLD = 4000; // of more, some neighbours are drawn as one

/** What the model foretold of each trial that is drawn. Of many, neighbours are joined to their mean. */
export function foretoldOf(table: Table, { metric, filter, from, to }: ForetoldInput): Foretold {
  const f: Foretold = { x: [], low: [], mean: [], high: [] };
  const [mean, deviation] = [table.column(`predicted:${metric}`), table.column(`deviation:${metric}`)];
  if (mean?.kind !== "number" || deviation?.kind !== "number") return f;
  const shown = shownOf(filter, table);
  const rows = new Uint32Array(table.n);
  let n = 0;
  for (let row = 0; row < table.n; row++) {
    const number = table.number[row]!;
    if (number >= (from ?? 0) && number <= (to ?? Infinity) && shown?.[row] !== 0 && Number.isFinite(mean.values[row]! + deviation.values[row]!)) rows[n++] = row;
  }
  const each = Math.max(1, Math.ceil(n / MOST_FORETOLD));
  for (let i = 0; i < n; i += each) {
    const some = rows.subarray(i, Math.min(n, i + each));
    const meanOf = (of: (row: number) => number) => { let sum = 0; for (const row of some) sum += of(row); return sum / some.length; };
    const [m, sd] = [meanOf((row) => mean.values[row]!), meanOf((row) => deviation.values[row]!)];
    f.x.push(table.number[some[some.length >> 1]!]!);
    f.low.push(m - sd);
    f.mean.push(m);
    f.high.push(m + sd);
  }
  return f;
}

/** What the sweep could still gain: for each bound the number of the trial with which it was known, the
 * best value then, and the best that any configuration may have. */
export interface Left {
  x: number[];
  best: number[];
  reach: number[];
}

/** The table does not have the order in which trials ended: a bound stands at the trial up to whose
 * number so many have completed. Bounds of too few trials are left out. */
export function leftOf(checks: readonly Api.RegretCheck[], table: Table, goal: "minimize" | "maximize"): Left {
  const sign = goal === "minimize" ? 1 : -1;
  const left: Left = { x: [], best: [], reach: [] };
  const value = table.column("value");
  const bad = table.column("infeasible");
  const done = table.state.words.indexOf("completed");
  let [n, best, at] = [0, NaN, 0];
  for (let row = 0; row < table.n && at < checks.length; row++) {
    if (table.state.values[row] !== done) continue;
    n++;
    const v = value?.kind === "number" ? value.values[row]! : NaN;
    if (Number.isFinite(v) && !(bad?.kind === "number" && bad.values[row] === 1) && !(v * sign >= best * sign)) best = v;
    for (; (checks[at]?.completed ?? Infinity) <= n; at++) {
      const bound = checks[at]!.bound;
      if (bound === null || !checks[at]!.enough || Number.isNaN(best)) continue;
      left.x.push(table.number[row]!);
      left.best.push(best);
      left.reach.push(best - sign * bound);
    }
  }
  return left;
}

/* Up to this many trials are all drawn; of more, at most one in each cell of this grid. */
const ALL_DRAWN = 6000;
const CELLS_ACROSS = 320; // some three pixels, as wide as a point
const CELLS_UP = 64;

/** Marks the rows that are drawn of many: the first in each cell, and all that are not ended or
 * were the best. */
class Thinning {
  readonly #taken = new Set<number>();
  readonly #n: number;
  readonly #begin: number;
  readonly #rows: number;
  readonly #low: number;
  readonly #size: number;

  constructor({ n, begin, end }: View, low: number, high: number) {
    this.#n = n;
    this.#begin = begin;
    this.#rows = end - begin + 1;
    this.#low = low;
    this.#size = (high - low) / CELLS_UP || 1;
  }

  /** `kind` tells apart what is drawn in different ways. */
  isFirst(row: number, kind: number, value: number): boolean {
    if (this.#n <= ALL_DRAWN) return true;
    const up = Math.min(CELLS_UP, Math.max(0, Math.floor((value - this.#low) / this.#size)));
    const cell = (kind * CELLS_ACROSS + Math.floor(((row - this.#begin) * CELLS_ACROSS) / this.#rows)) * (CELLS_UP + 1) + up;
    if (this.#taken.has(cell)) return false;
    this.#taken.add(cell);
    return true;
  }
}

const QUEUED = 0; // kinds of rows; what is neither of the following is drawn as nothing
const DONE = 1;
const BAD = 2;
const BEYOND = 3;
const FAILED = 4;
const OPEN = 5;
const KINDS = 6;

/** The rows that pass the filter, those that are drawn of them, and what is highlighted. */
interface View {
  shown: Uint8Array | null;
  isMarked: ((row: number) => boolean) | null;
  /** The first and the last row that passes the filter; -1: none. */
  first: number;
  last: number;
  /** The same of the part that is drawn, and how many there are. */
  begin: number;
  end: number;
  n: number;
}

function viewOf(table: Table, { filter, brush, picked, from, to }: HistoryInput): View {
  const shown = shownOf(filter, table);
  const mark = markOf(table, brush, picked, shown);
  const v: View = { shown, isMarked: mark && ((row) => mark.rows[row] === 1), first: -1, last: -1, begin: -1, end: -1, n: 0 };
  for (let row = 0; row < table.n; row++) {
    if (shown?.[row] === 0) continue;
    if (v.first < 0) v.first = row;
    v.last = row;
    if (table.number[row]! < (from ?? 0) || table.number[row]! > (to ?? Infinity)) continue;
    if (v.begin < 0) v.begin = row;
    v.end = row;
    v.n++;
  }
  return v;
}

export function historyOf(table: Table, input: HistoryInput): History {
  const { goal, y, far } = input;
  const sign = goal === "minimize" ? 1 : -1;
  const { n, state } = table;
  const view = viewOf(table, input);
  const isShown = (row: number) => view.shown === null || view.shown[row] === 1;
  const isState = (name: string) => { const at = state.words.indexOf(name); return (row: number) => state.values[row] === at; };
  const [isCompleted, isFailed, isRunning, isPaused] = [isState("completed"), isState("failed"), isState("running"), isState("paused")];
  const column = table.column("value");
  const all = column?.kind === "number" ? column.values : new Float64Array(n).fill(NaN);
  const bad = table.column("infeasible");
  const isBad = (row: number) => bad?.kind === "number" && bad.values[row] === 1;
  const values = all.filter((v, row) => Number.isFinite(v) && isCompleted(row) && isShown(row));
  const sorted = values.slice().sort();
  const [positive, wide] = [(sorted[0] ?? 1) > 0, sign > 0 && spansInOrder(sorted)];
  const log = positive && (y === "auto" ? wide : y === "log");
  const height = log ? Math.log : (v: number) => v;
  const outer = edgeOfSorted(log ? sorted.map(height) : sorted, sign);
  const clip = !far;
  const edge = clip ? outer : Infinity;
  let [low, high] = [Infinity, -Infinity];
  for (let row = view.begin; row >= 0 && row <= view.end; row++) {
    const v = all[row]!;
    if (Number.isFinite(v) && isCompleted(row) && isShown(row) && height(v) * sign <= edge) [low, high] = [Math.min(low, height(v)), Math.max(high, height(v))];
  }
  const numberOf = (row: number) => (row < 0 ? 0 : table.number[row]!);
  const h: History = { rows: [], x: [], done: [], infeasible: [], open: [], best: [], steps: [], beyond: [], failed: [], completed: values.length, far: 0, marked: view.isMarked && [], highlighted: 0, first: numberOf(view.first), last: numberOf(view.last), isInfeasible: false, isRunning: false, isPaused: false, bestNumber: null, bestValue: null, positive, wide, log, clip };
  const thin = new Thinning(view, low, high);
  for (let row = 0; row < n; row++) {
    if (!isShown(row)) continue;
    const value = Number.isFinite(all[row]) ? all[row]! : null;
    const completed = value !== null && isCompleted(row);
    const infeasible = isBad(row);
    const better = completed && !infeasible && (h.bestValue === null || value * sign < h.bestValue * sign);
    if (better) [h.bestValue, h.bestNumber] = [value, table.number[row]!];
    if (completed && height(value) * sign > outer) h.far++;
    h.isInfeasible ||= infeasible;
    h.isRunning ||= isRunning(row);
    h.isPaused ||= isPaused(row);
    if (row < view.begin || row > view.end) continue;
    const seen = value !== null && height(value) * sign <= edge;
    const kind = completed ? (!seen ? BEYOND : infeasible ? BAD : DONE) : isFailed(row) ? FAILED : seen && (isRunning(row) || isPaused(row)) ? OPEN : QUEUED;
    const marked = view.isMarked !== null && view.isMarked(row);
    if (marked) h.highlighted++;
    const apart = better || row === view.begin || row === view.end || kind === OPEN;
    if (!apart && !thin.isFirst(row, marked ? KINDS + kind : kind, kind === DONE || kind === BAD ? height(value!) : low)) continue;
    if (kind === BEYOND) h.beyond.push(h.x.length);
    if (kind === FAILED) h.failed.push(h.x.length);
    if (marked) h.marked!.push(h.x.length);
    h.rows.push(row);
    h.x.push(table.number[row]!);
    h.done.push(kind === DONE ? value : null);
    h.infeasible.push(kind === BAD ? value : null);
    h.open.push(kind === OPEN ? value : null);
    h.best.push(h.bestValue);
    h.steps.push(better ? value : null);
  }
  return h;
}

/** All trials of the part that pass the filter, as the text of a CSV file: none is left out, and no value is cut. */
export function historyCsv(table: Table, input: HistoryInput & { metric: string }): string {
  const sign = input.goal === "minimize" ? 1 : -1;
  const shown = shownOf(input.filter, table);
  const mark = markOf(table, input.brush, input.picked, shown);
  const [value, bad] = [table.column("value"), table.column("infeasible")];
  function* lines() {
    let best: number | null = null;
    for (let row = 0; row < table.n; row++) {
      if (shown?.[row] === 0) continue;
      const [number, v, state] = [table.number[row]!, numberAt(value, row), wordAt(table.state, row)];
      const isBad = numberAt(bad, row) === 1;
      if (v !== null && Number.isFinite(v) && state === "completed" && !isBad && (best === null || v * sign < best * sign)) best = v;
      if (number >= (input.from ?? 0) && number <= (input.to ?? Infinity)) yield [number, isBad && state === "completed" ? "infeasible" : state, v, best, mark ? mark.rows[row]! : 0];
    }
  }
  return csvOf(["number", "state", input.metric, "best so far", "highlighted"], lines());
}

/** What the marks of trials that have not ended stand for; null: there are none. */
export const openLabel = (h: History): string | null => (h.isPaused ? (h.isRunning ? "running or paused" : "paused") : h.isRunning ? "running" : null);

/** The same without the values that a logarithmic axis cannot show. */
export function positiveOnly(values: (number | null)[]): (number | null)[] {
  return values.map((v) => (v !== null && v > 0 ? v : null));
}
