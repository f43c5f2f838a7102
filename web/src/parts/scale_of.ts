/* The axis of a column: plain data, which the worker makes and the page draws. Places lie between 0
 * and 1; NaN: there is no value. */
import type * as Api from "../api/types";
import { MISSING, type Column } from "../data/columns";
import { own, sig, valueText } from "../format";
import { edgeOf, spansDecades } from "./history";

const TICKS = 6;
const MOST_WORDS = 12; // labels of an axis

export interface Tick {
  place: number;
  label: string;
}

export interface Axis {
  /** The column of the table. */
  name: string;
  label: string;
  /** Of a column of words: all of them in their order; null: a column of numbers. */
  words: string[] | null;
  min: number;
  max: number;
  log: boolean;
  /** Rows beyond the end, far from the rest, are drawn at it. */
  beyond: boolean;
  ticks: Tick[];
}

export type Goal = "minimize" | "maximize" | null;

type Bounds = { min: number; max: number; log: boolean; beyond: boolean };

function boundsOf(values: Float64Array, parameter: Api.Parameter | undefined, goal: Goal): Bounds {
  let [min, max] = [Infinity, -Infinity];
  for (const v of values) [min, max] = [Math.min(min, v), Math.max(max, v)];
  const described = parameter as { min?: unknown; max?: unknown; scale?: unknown } | undefined;
  if (typeof described?.min === "number") min = Math.min(min, described.min);
  if (typeof described?.max === "number") max = Math.max(max, described.max);
  if (!(min <= max)) [min, max] = [0, 1];
  const wide = goal === "minimize" && spansDecades(values);
  const log = min > 0 && (described?.scale === "log" || wide);
  const edge = goal === null ? Infinity : edgeOf(log ? values.map(Math.log) : values, goal === "minimize" ? 1 : -1);
  if (edge < Infinity && log) { // up to the last value that is near: four times the spread are many decades
    const near = values.filter((v) => Math.log(v) * (goal === "minimize" ? 1 : -1) <= edge);
    [min, max] = goal === "minimize" ? [min, near.reduce((a, b) => Math.max(a, b))] : [near.reduce((a, b) => Math.min(a, b)), max];
  } else if (edge < Infinity) [min, max] = goal === "minimize" ? [min, edge] : [-edge, max];
  if (min === max) [min, max] = log ? [min / 2, max * 2] : [min - 0.5, max + 0.5];
  return { min, max, log, beyond: edge < Infinity };
}

/** Round numbers for the ticks of an axis. */
export function numbersBetween({ min, max, log }: { min: number; max: number; log: boolean }): number[] {
  if (log) {
    const decades = Math.log10(max / min);
    const factors = decades > 2 ? [1] : decades > 1 ? [1, 3] : [1, 2, 3, 5, 7];
    const every = Math.max(1, Math.ceil(decades / (2 * TICKS)));
    const all: number[] = [];
    for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) if (e % every === 0) for (const f of factors) all.push(f * 10 ** e);
    return all.filter((t) => t >= min * (1 - 1e-9) && t <= max * (1 + 1e-9));
  }
  const raw = (max - min) / TICKS;
  const size = 10 ** Math.floor(Math.log10(raw));
  const stride = [1, 2, 5, 10].map((f) => f * size).find((s) => s >= raw) ?? raw;
  const all: number[] = [];
  for (let i = Math.ceil(min / stride - 1e-9); i * stride <= max + 1e-9 * stride && all.length < 100; i++) all.push(Number((i * stride).toPrecision(12)));
  return all;
}

/** An axis of numbers from the least to the greatest. */
export function axisBetween(label: string, min: number, max: number, log: boolean): Axis {
  if (!(min < max)) [min, max] = log ? [min / 2, min * 2] : Number.isFinite(min) ? [min - 0.5, min + 0.5] : [0, 1];
  const axis: Axis = { name: label, label, words: null, min, max, log, beyond: false, ticks: [] };
  axis.ticks = numbersBetween(axis).map((t) => ({ place: placeOf(axis, t), label: sig(t, 3) }));
  return axis;
}

/** `rows`: those that are drawn. `goal`: of a metric, whose outliers go to the end of the axis. */
export function axisOf(column: Column, label: string, rows: Uint32Array, parameter: Api.Parameter | undefined, goal: Goal): Axis {
  if (column.kind === "words") {
    const listed = ((parameter as { values?: Api.Value[] } | undefined)?.values ?? []).map((v) => (typeof v === "string" ? v : JSON.stringify(v)));
    const words = [...new Set([...listed, ...column.words])];
    const every = Math.ceil(words.length / MOST_WORDS);
    const ticks = words.map((w, i) => ({ place: (i + 0.5) / words.length, label: valueText(w) })).filter((_, i) => i % every === 0);
    return { name: column.name, label, words, min: 0, max: 1, log: false, beyond: false, ticks };
  }
  const finite = new Float64Array(rows.length);
  let n = 0;
  for (let i = 0; i < rows.length; i++) { const v = column.values[rows[i]!]!; if (Number.isFinite(v)) finite[n++] = v; }
  const bounds = boundsOf(finite.subarray(0, n), parameter, goal);
  const axis: Axis = { name: column.name, label, words: null, ...bounds, ticks: [] };
  axis.ticks = numbersBetween(axis).map((t) => ({ place: placeOf(axis, t), label: sig(t, 3) }));
  return axis;
}

/** Where a number lies; may be outside of 0 to 1. */
export function placeOf(a: Axis, value: number): number {
  return a.log ? Math.log(value / a.min) / Math.log(a.max / a.min) : (value - a.min) / (a.max - a.min);
}

/** The number at a place. */
export const valueOf = (a: Axis, place: number): number => (a.log ? a.min * (a.max / a.min) ** place : a.min + place * (a.max - a.min));

/** By the words of an axis: where each stands. */
const ranks = new WeakMap<readonly string[], Map<string, number>>();

export function placeOfWord(a: Axis, word: string): number {
  if (a.words === null) return NaN;
  let rank = ranks.get(a.words);
  if (rank === undefined) ranks.set(a.words, rank = new Map(a.words.map((w, i) => [w, i])));
  return ((rank.get(word) ?? NaN) + 0.5) / a.words.length;
}

/** Where a value of the API lies on the axis of its parameter. */
export const placeOfValue = (a: Axis, value: Api.Value): number => (a.words === null ? placeOf(a, Number(value)) : placeOfWord(a, typeof value === "string" ? value : JSON.stringify(value)));

/** The places of rows of the axis' column, those beyond an end at it. */
export function placesOf(a: Axis, column: Column, rows: Uint32Array): Float32Array {
  const places = new Float32Array(rows.length);
  if (column.kind === "words") {
    const rank = new Map(a.words!.map((w, i) => [w, (i + 0.5) / a.words!.length]));
    const of = Float32Array.from(column.words, (w) => rank.get(w) ?? NaN);
    for (let i = 0; i < rows.length; i++) { const word = column.values[rows[i]!]!; places[i] = word === MISSING ? NaN : of[word]!; }
    return places;
  }
  for (let i = 0; i < rows.length; i++) { const p = placeOf(a, column.values[rows[i]!]!); places[i] = p > 1 ? 1 : p < 0 ? 0 : p; }
  return places;
}

/** The parameter of a column of the table. */
export const parameterOf = (parameters: Record<string, Api.Parameter> | undefined, column: string): Api.Parameter | undefined => (column.startsWith("param:") ? own(parameters, column.slice(6)) : undefined);
