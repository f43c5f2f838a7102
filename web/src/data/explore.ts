/* What the views of all completed trials by their parameters draw: parallel coordinates, slices,
 * contours. A job of the worker: the page gets the places of the trials that are drawn, and counts
 * of all. */
import type * as Api from "../api/types";
import { axisOf, parameterOf, placesOf, type Axis, type Goal } from "../parts/scale_of";
import type { Column, Table } from "./columns";
import { Density, type Boxes } from "./density";
import { shownOf } from "./filter";
import { markOf } from "./marks";
import { orderRows } from "./order";

export const SHADES = 5;

export interface ExploreInput {
  /** Names of parameters, in the order of the axes. */
  names: readonly string[];
  parameters: Record<string, Api.Parameter>;
  metric: { column: string; name: string; goal: Goal };
  filter: string;
  brush: string;
  picked: string;
  /** At most so many trials are drawn one by one. */
  most: number;
  /** The axes of the lines, columns of the table, for a picture of how many there are of them if they
   * are more than `most`; null: there are no lines. */
  lines: readonly string[] | null;
}

export interface ExploredAxis extends Axis {
  /** Of all trials, how many have a value. */
  active: number;
  /** Of the drawn ones. */
  places: Float32Array;
}

export interface Explored {
  /** Completed trials that have a value of the metric and pass the filter. */
  count: number;
  infeasible: number;
  /** How many of them are highlighted; null: nothing is. */
  marked: number | null;
  /** The parameters, then the metric. */
  axes: ExploredAxis[];
  /** Numbers of the trials that are drawn, the highlighted ones last, the best ones above. */
  drawn: Uint32Array;
  /** How many of the drawn ones are not highlighted, although others are. */
  faint: number;
  /** Of the drawn ones: the fifth by the metric, from 1 (worst) to SHADES; 0: infeasible. */
  fifth: Uint8Array;
  /** All lines, or of highlighted trials the others; null: every line is drawn. */
  density: Boxes | null;
  /** The best of the highlighted trials. */
  best: { number: number; value: number }[];
}

const MOST_BEST = 20;
const GAP_CELLS = 36; // columns of the density between two axes
const CELLS_UP = 160;
const BUNDLE_CELLS = 2; // lines whose ends share so many cells are drawn as one …
const BUNDLES = (CELLS_UP / BUNDLE_CELLS) ** 2; // … when there are more than all bundles

/** Every k-th row, so that at most `most` are left: the last one, which is the best, always. */
function thinned(rows: Uint32Array, most: number): Uint32Array {
  if (rows.length <= most) return rows;
  const stride = rows.length / Math.max(1, most);
  return Uint32Array.from({ length: most }, (_, i) => rows[Math.ceil((i + 1) * stride) - 1]!);
}

/** Completed trials with a value that pass the filter: infeasible ones, then the others, the worst
 * first. */
function rowsOf(table: Table, column: Column | undefined, goal: Goal, shown: Uint8Array | null): { rows: Uint32Array; infeasible: number } {
  const completed = table.state.words.indexOf("completed");
  const wanted = new Uint8Array(table.n);
  if (column?.kind === "number") for (let r = 0; r < table.n; r++) if (table.state.values[r] === completed && !Number.isNaN(column.values[r]!) && (shown === null || shown[r] === 1)) wanted[r] = 1;
  const order = orderRows(table.n, wanted, column, goal !== "maximize");
  const bad = table.column("infeasible");
  const isBad = (row: number) => bad?.kind === "number" && bad.values[row] === 1;
  const [apart, fit] = [order.filter(isBad), order.filter((r) => !isBad(r))];
  const rows = new Uint32Array(order.length);
  rows.set(apart);
  rows.set(fit, apart.length);
  return { rows, infeasible: apart.length };
}

/** By row of the table: its fifth. */
function fifthsOf(n: number, rows: Uint32Array, infeasible: number): Uint8Array {
  const fifths = new Uint8Array(n);
  for (let i = infeasible; i < rows.length; i++) fifths[rows[i]!] = SHADES - Math.floor((SHADES * (rows.length - 1 - i)) / (rows.length - infeasible)); // the best one of few is in the best
  return fifths;
}

/** The lines between two axes: counted by where they begin and end, so that what is drawn does not
 * grow with the trials. */
function bundlesOf(density: Density, x: number, from: Float32Array, to: Float32Array, rows: Uint32Array, fifths: Uint8Array): void {
  const side = CELLS_UP / BUNDLE_CELLS;
  const [lines, tones] = [new Uint32Array(BUNDLES), new Uint32Array(BUNDLES)];
  const up = side - 1e-3;
  for (let i = 0; i < rows.length; i++) {
    const at = Math.floor(from[i]! * up) * side + Math.floor(to[i]! * up);
    if (!(at >= 0)) continue; // it has no value of one of them
    lines[at]!++;
    tones[at]! += fifths[rows[i]!]!;
  }
  for (let at = 0; at < BUNDLES; at++) if (lines[at]! > 0) density.bundle(x, BUNDLE_CELLS * Math.floor(at / side), x + GAP_CELLS, BUNDLE_CELLS * (at % side), BUNDLE_CELLS, lines[at]!, tones[at]!);
}

function linesOf(table: Table, axes: readonly Axis[], rows: Uint32Array, fifths: Uint8Array): Boxes {
  const density = new Density(Math.max(1, axes.length - 1) * GAP_CELLS, CELLS_UP);
  const places = axes.map((a) => placesOf(a, table.column(a.name)!, rows));
  const up = CELLS_UP - 1e-3;
  for (let a = 0; a + 1 < axes.length; a++) {
    const [from, to] = [places[a]!, places[a + 1]!];
    if (rows.length > BUNDLES) bundlesOf(density, a * GAP_CELLS, from, to, rows, fifths);
    else for (let i = 0; i < rows.length; i++) density.line(a * GAP_CELLS, from[i]! * up, (a + 1) * GAP_CELLS, to[i]! * up, fifths[rows[i]!]!);
  }
  return density.boxes();
}

export function explore(table: Table, input: ExploreInput): Explored {
  const { metric, most } = input;
  const shown = shownOf(input.filter, table);
  const { rows, infeasible } = rowsOf(table, table.column(metric.column), metric.goal, shown);
  const fifths = fifthsOf(table.n, rows, infeasible);
  const mark = markOf(table, input.brush, input.picked, shown);
  const [faint, strong] = mark ? [rows.filter((r) => mark.rows[r] !== 1), rows.filter((r) => mark.rows[r] === 1)] : [rows.subarray(0, 0), rows];
  const [strongDrawn, faintDrawn] = [thinned(strong, most), thinned(faint, Math.max(0, most - Math.min(most, strong.length)))];
  const drawn = new Uint32Array(faintDrawn.length + strongDrawn.length);
  drawn.set(faintDrawn);
  drawn.set(strongDrawn, faintDrawn.length);
  const columns = [...input.names.map((n) => `param:${n}`), metric.column];
  const axes = columns.flatMap((name) => {
    const column = table.column(name);
    if (column === undefined) return [];
    const isMetric = name === metric.column;
    const axis = axisOf(column, isMetric ? metric.name : name.slice(6), rows, parameterOf(input.parameters, name), isMetric ? metric.goal : null);
    const all = placesOf(axis, column, rows);
    let active = 0;
    for (const p of all) if (!Number.isNaN(p)) active++;
    return [{ ...axis, active, places: placesOf(axis, column, drawn) }];
  });
  const dense = input.lines !== null && drawn.length < rows.length;
  const along = dense ? input.lines!.flatMap((name) => axes.filter((a) => a.name === name)) : [];
  const value = table.column(metric.column);
  const best = mark ? [...strong.subarray(Math.max(0, strong.length - MOST_BEST))].reverse() : [];
  return {
    count: rows.length, infeasible, marked: mark ? strong.length : null, axes, faint: faintDrawn.length,
    drawn: drawn.map((r) => table.number[r]!), fifth: Uint8Array.from(drawn, (r) => fifths[r]!),
    density: dense ? linesOf(table, along, mark ? faint : rows, fifths) : null,
    best: best.map((r) => ({ number: table.number[r]!, value: value?.kind === "number" ? value.values[r]! : NaN })),
  };
}
