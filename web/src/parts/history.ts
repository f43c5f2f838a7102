/* Computes what the chart of a sweep draws. Pure, so that it is easy to test.
 *
 * One diverged trial with a huge value would flatten all others. So values beyond the worse
 * quartile by more than REACH interquartile ranges are drawn at the edge. If many values are far
 * from the best, the axis is logarithmic unless the user chose otherwise. */
import type * as Api from "../api/types";
import { toNumber } from "../format";
import { isInfeasible } from "./objectives";
import { predictionsOf } from "./reason";

const REACH = 4;
const FEWEST_TO_JUDGE = 8;
const WIDE = 10;

export interface History {
  /** Trial numbers, and for each of them … */
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
  completed: number;
  /** The best completed, feasible trial, and whether every value to be drawn is above zero. */
  bestAt: number | null;
  positive: boolean;
}

/** The worst value that is still drawn: Infinity when no value lies far from the rest. `sign` is 1
 * to minimize. */
export function edgeOf(values: number[], sign: number): number {
  if (values.length < FEWEST_TO_JUDGE) return Infinity;
  const cost = values.map((v) => v * sign).sort((a, b) => a - b);
  const at = (q: number) => cost[Math.floor(q * (cost.length - 1))] ?? 0;
  const spread = at(0.75) - at(0.25);
  const edge = at(0.75) + REACH * spread;
  return spread > 0 && (cost[cost.length - 1] ?? 0) > edge ? edge : Infinity;
}

/** Whether values to be minimized span so much that a linear axis would hide the good ones. */
export function spansDecades(values: number[]): boolean {
  const sorted = [...values].sort((a, b) => a - b);
  const [best = 0, most = 0] = [sorted[0], sorted[Math.floor(0.9 * (sorted.length - 1))]];
  return values.length >= FEWEST_TO_JUDGE && best > 0 && most > WIDE * best;
}

/** Whether a number can be drawn. */
export const drawable = (v: number | null): number | null => (v !== null && Number.isFinite(v) ? v : null);
const finite = (trial: Api.Trial): number | null => drawable(toNumber(trial.value));

/** The predictions for the first objective: trial number, mean minus deviation, mean, mean plus
 * deviation. */
export interface Foretold {
  x: number[];
  low: number[];
  mean: number[];
  high: number[];
}

export function foretold(trials: readonly Api.Trial[]): Foretold {
  const f: Foretold = { x: [], low: [], mean: [], high: [] };
  for (const trial of trials) {
    const p = predictionsOf(trial.suggestion)[0];
    if (!p || !Number.isFinite(p.mean) || !Number.isFinite(p.deviation)) continue;
    f.x.push(trial.number);
    f.low.push(p.mean - p.deviation);
    f.mean.push(p.mean);
    f.high.push(p.mean + p.deviation);
  }
  return f;
}

export function historyOf(trials: readonly Api.Trial[], goal: "minimize" | "maximize", clip: boolean): History {
  const sign = goal === "minimize" ? 1 : -1;
  const values = trials.filter((t) => t.state === "completed").map(finite).filter((v): v is number => v !== null);
  const edge = clip ? edgeOf(values, sign) : Infinity;
  const h: History = { x: [], done: [], infeasible: [], open: [], best: [], steps: [], beyond: [], failed: [], completed: 0, bestAt: null, positive: values.every((v) => v > 0) };
  let best: number | null = null;
  for (const trial of trials) {
    const value = finite(trial);
    const completed = trial.state === "completed" && value !== null;
    const bad = isInfeasible(trial);
    const better = completed && !bad && (best === null || value * sign < best * sign);
    if (better) [best, h.bestAt] = [value, h.x.length];
    const seen = value !== null && value * sign <= edge;
    if (completed) h.completed++;
    if (completed && !seen) h.beyond.push(h.x.length);
    if (trial.state === "failed") h.failed.push(h.x.length);
    h.x.push(trial.number);
    h.done.push(completed && seen && !bad ? value : null);
    h.infeasible.push(completed && seen && bad ? value : null);
    h.open.push(seen && (trial.state === "running" || trial.state === "paused") ? value : null);
    h.best.push(best);
    h.steps.push(better ? value : null);
  }
  return h;
}

/** The same without the values that a logarithmic axis cannot show. */
export function positiveOnly(values: (number | null)[]): (number | null)[] {
  return values.map((v) => (v !== null && v > 0 ? v : null));
}
