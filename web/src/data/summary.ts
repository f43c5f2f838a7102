/* What a comparison of sweeps needs of one: its best so far, and the distribution of its values. */
import { MISSING, type Column } from "./columns";
import type { Part } from "./columnar";
import { orderRows } from "./order";

export interface Summary {
  /** Trials that ended; those that completed with a value and keep the constraints. */
  ended: number;
  completed: number;
  best: number | null;
  /** Each improvement: how many trials, seconds since the first one began, and steps of all trials it
   * took, and the best value from then on. The last entry is the end. */
  trials: Float64Array;
  seconds: Float64Array;
  steps: Float64Array;
  value: Float64Array;
  /** Values, ascending; of many, evenly spaced quantiles with both ends. */
  values: Float64Array;
  /** Whether any trial reported a step. */
  hasSteps: boolean;
}

const MOST_VALUES = 512;
const ENDED = ["completed", "pruned", "failed", "cancelled"];

export function summaryOf(part: Part, metric: string, goal: "minimize" | "maximize"): Summary {
  const n = part.number.length;
  const named = (name: string): Column | undefined => part.columns.find((c) => c.name === name);
  const numbers = (name: string): Float64Array => { const c = named(name); return c?.kind === "number" ? c.values : new Float64Array(n).fill(NaN); };
  const state = named("state");
  const is = (words: readonly string[]) => { const at = new Set(state?.kind === "words" ? words.map((w) => state.words.indexOf(w)) : []); return (row: number) => state?.kind === "words" && state.values[row] !== MISSING && at.has(state.values[row]!); };
  const [isEnded, isCompleted] = [is(ENDED), is(["completed"])];
  const [values, bad, began, end, step] = [numbers(metric), numbers("infeasible"), numbers("started_at"), numbers("ended_at"), numbers("step")];
  let first = Infinity;
  for (const t of began) if (t < first) first = t;
  const wanted = Uint8Array.from({ length: n }, (_, row) => Number(isEnded(row)));
  const order = orderRows(n, wanted, { name: "ended_at", kind: "number", values: end }, false);
  const sign = goal === "minimize" ? 1 : -1;
  const [trials, seconds, steps, value]: [number[], number[], number[], number[]] = [[], [], [], []];
  let [best, all, completed, seen]: [number | null, number, number, number] = [null, 0, 0, 0];
  let [at, hasSteps] = [0, false];
  const found = new Float64Array(order.length);
  for (const row of order) {
    seen++;
    if (step[row]! > 0) [all, hasSteps] = [all + step[row]!, true];
    at = Number.isFinite(end[row]! - first) ? (end[row]! - first) / 1000 : at;
    const v = values[row]!;
    if (!isCompleted(row) || !Number.isFinite(v) || bad[row] === 1) continue;
    found[completed++] = v;
    if (best !== null && v * sign >= best * sign) continue;
    best = v;
    trials.push(seen); seconds.push(at); steps.push(all); value.push(v);
  }
  if (best !== null) { trials.push(seen); seconds.push(at); steps.push(all); value.push(best); }
  const sorted = found.subarray(0, completed).sort();
  const few = sorted.length <= MOST_VALUES ? sorted.slice() : Float64Array.from({ length: MOST_VALUES }, (_, i) => sorted[Math.round((i * (sorted.length - 1)) / (MOST_VALUES - 1))]!);
  return { ended: seen, completed, best, trials: Float64Array.from(trials), seconds: Float64Array.from(seconds), steps: Float64Array.from(steps), value: Float64Array.from(value), values: few, hasSteps };
}

/** The best so far at a place along the axis; NaN before the first result. */
export function bestAt(along: Float64Array, value: Float64Array, x: number): number {
  let found = NaN;
  for (let i = 0; i < along.length && along[i]! <= x; i++) found = value[i]!;
  return found;
}

/** A quantile of numbers by linear interpolation; NaN of none. */
export function quantile(sorted: readonly number[], q: number): number {
  const at = q * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low === undefined || high === undefined ? NaN : low + (high - low) * (at - Math.floor(at));
}

export interface Band {
  x: number[];
  low: number[];
  mid: number[];
  high: number[];
}

/** The best so far of several runs that differ in their seeds: median and the interval from a tenth
 * to nine tenths, where at least half of them have a result. */
export function bandOf(runs: readonly Summary[], across: "trials" | "seconds" | "steps", places: readonly number[]): Band {
  const band: Band = { x: [], low: [], mid: [], high: [] };
  const last = Math.max(0, ...runs.map((r) => r[across].at(-1) ?? 0));
  for (const x of places) {
    if (x > last) break;
    const values = runs.map((r) => bestAt(r[across], r.value, x)).filter((v) => !Number.isNaN(v)).sort((a, b) => a - b);
    if (2 * values.length < runs.length || values.length === 0) continue;
    band.x.push(x);
    band.low.push(quantile(values, 0.1));
    band.mid.push(quantile(values, 0.5));
    band.high.push(quantile(values, 0.9));
  }
  return band;
}
