/* The axis of a column: where a row's value lies between 0 and 1, the labels of the ticks, and the
 * value at a place. */
import type * as Api from "../api/types";
import { MISSING, type Column } from "../data/columns";
import { own, sig } from "../format";
import { edgeOf, spansDecades } from "./history";

const TICKS = 6;
const MOST_WORDS = 12; // labels of an axis

export interface Scale {
  column: Column;
  label: string;
  log: boolean;
  /** 0 to 1; NaN: the row has no value. */
  at(row: number): number;
  /** A column of numbers: the value at a place. */
  valueAt(place: number): number;
  /** Where a value of a column of numbers lies; may be outside of 0 to 1. */
  placeOf(value: number): number;
  ticks: { place: number; label: string }[];
  /** Rows beyond the end, far from the rest, are drawn at it. */
  beyond: boolean;
}

type Bounds = { min: number; max: number; log: boolean; beyond: boolean };

function boundsOf(values: number[], parameter: Api.Parameter | undefined, goal: "minimize" | "maximize" | null): Bounds {
  let [min, max] = [Infinity, -Infinity];
  for (const v of values) [min, max] = [Math.min(min, v), Math.max(max, v)];
  const described = parameter as { min?: unknown; max?: unknown; scale?: unknown } | undefined;
  if (typeof described?.min === "number") min = Math.min(min, described.min);
  if (typeof described?.max === "number") max = Math.max(max, described.max);
  if (!(min <= max)) [min, max] = [0, 1];
  const wide = goal === "minimize" && spansDecades(values);
  const log = min > 0 && (described?.scale === "log" || wide);
  const edge = goal === null || log ? Infinity : edgeOf(values, goal === "minimize" ? 1 : -1);
  if (edge < Infinity) [min, max] = goal === "minimize" ? [min, edge] : [-edge, max];
  if (min === max) [min, max] = log ? [min / 2, max * 2] : [min - 0.5, max + 0.5];
  return { min, max, log, beyond: edge < Infinity };
}

function ticksOf({ min, max, log }: Bounds): number[] {
  if (log) {
    const decades = Math.log10(max / min);
    const factors = decades > 2 ? [1] : decades > 1 ? [1, 3] : [1, 2, 3, 5, 7];
    const all: number[] = [];
    for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) for (const f of factors) all.push(f * 10 ** e);
    return all.filter((t) => t >= min * (1 - 1e-9) && t <= max * (1 + 1e-9));
  }
  const raw = (max - min) / TICKS;
  const size = 10 ** Math.floor(Math.log10(raw));
  const stride = [1, 2, 5, 10].map((f) => f * size).find((s) => s >= raw) ?? raw;
  const all: number[] = [];
  for (let i = Math.ceil(min / stride - 1e-9); i * stride <= max + 1e-9 * stride; i++) all.push(Number((i * stride).toPrecision(12)));
  return all;
}

/** `rows`: those that are drawn. `goal`: of a metric, whose outliers go to the end of the axis. */
export function scaleOf(column: Column, label: string, rows: readonly number[], parameter: Api.Parameter | undefined, goal: "minimize" | "maximize" | null): Scale {
  if (column.kind === "words") {
    const listed = ((parameter as { values?: Api.Value[] } | undefined)?.values ?? []).map((v) => (typeof v === "string" ? v : JSON.stringify(v)));
    const order = [...new Set([...listed, ...column.words])];
    const rank = new Map(order.map((w, i) => [w, i]));
    const place = (i: number) => (i + 0.5) / order.length;
    const every = Math.ceil(order.length / MOST_WORDS);
    const { values } = column;
    const placeOfWord = column.words.map((w) => place(rank.get(w)!));
    return { column, label, log: false, beyond: false, at: (row) => (values[row] === MISSING ? NaN : placeOfWord[values[row]!] ?? NaN), valueAt: () => NaN, placeOf: () => NaN, ticks: order.map((w, i) => ({ place: place(i), label: w })).filter((_, i) => i % every === 0) };
  }
  const { values } = column;
  const finite = rows.map((r) => values[r]!).filter((v) => Number.isFinite(v));
  const bounds = boundsOf(finite, parameter, goal);
  const { min, max, log } = bounds;
  const placeOf = log ? (v: number) => Math.log(v / min) / Math.log(max / min) : (v: number) => (v - min) / (max - min);
  return {
    column, label, log, beyond: bounds.beyond, placeOf,
    at: (row) => { const p = placeOf(values[row]!); return p > 1 ? 1 : p < 0 ? 0 : p; },
    valueAt: (p) => (log ? min * (max / min) ** p : min + p * (max - min)),
    ticks: ticksOf(bounds).map((t) => ({ place: placeOf(t), label: sig(t, 3) })),
  };
}

/** The parameter of a column of the table. */
export const parameterOf = (sweep: Api.Sweep, column: string): Api.Parameter | undefined => (column.startsWith("param:") ? own(sweep.document.parameters as Record<string, Api.Parameter> | undefined, column.slice(6)) : undefined);
