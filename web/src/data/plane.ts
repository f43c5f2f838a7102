/* Completed trials in the plane of two objectives: what is drawn of them, and counts of all. A job of the worker. */
import { csvOf } from "../parts/csv";
import { edgeOf } from "../parts/history";
import type { Table } from "./columns";
import { shownOf } from "./filter";
import { markOf } from "./marks";
import { parseNumbers } from "./numbers";

export interface PlaneAxis {
  /** Of the table. */
  column: string;
  goal: "minimize" | "maximize";
}

export interface PlaneInput {
  x: PlaneAxis;
  y: PlaneAxis;
  /** Numbers of the trials of the front, as formatNumbers() writes them. */
  front: string;
  /** Leave out outliers. */
  clip: boolean;
  filter: string;
  brush: string;
  picked: string;
}

export const BEATEN = 0; // kinds of points
export const INFEASIBLE = 1;
export const FRONT = 2;
const KINDS = 3;

/** Points from left to right. Of many, one is drawn for each place of a fine grid; those of the front all are. */
export interface Plane {
  row: Uint32Array;
  x: Float64Array;
  y: Float64Array;
  kind: Uint8Array;
  /** 1: it is highlighted. */
  marked: Uint8Array;
  /** Completed trials with both values that pass the filter. */
  count: number;
  /** Of them: on the front; far from the rest, and not drawn; highlighted (null: nothing is). */
  onFront: number;
  off: number;
  highlighted: number | null;
  isInfeasible: boolean;
}

const ALL_DRAWN = 6000;
const CELLS_ACROSS = 240; // some three pixels, as wide as a point
const CELLS_UP = 100;

interface Points {
  rows: Uint32Array;
  x: Float64Array;
  y: Float64Array;
  kind: Uint8Array;
  mark: { rows: Uint8Array } | null;
}

function pointsOf(table: Table, input: PlaneInput): Points {
  const [cx, cy, bad] = [table.column(input.x.column), table.column(input.y.column), table.column("infeasible")];
  const completed = table.state.words.indexOf("completed");
  const shown = shownOf(input.filter, table);
  const rows = new Uint32Array(table.n);
  let n = 0;
  if (cx?.kind === "number" && cy?.kind === "number") for (let r = 0; r < table.n; r++) if (table.state.values[r] === completed && shown?.[r] !== 0 && Number.isFinite(cx.values[r]!) && Number.isFinite(cy.values[r]!)) rows[n++] = r;
  const kept = rows.slice(0, n);
  const of = (c: typeof cx) => (c?.kind === "number" ? Float64Array.from(kept, (r) => c.values[r]!) : new Float64Array(0));
  const kind = Uint8Array.from(kept, (r) => (bad?.kind === "number" && bad.values[r] === 1 ? INFEASIBLE : BEATEN));
  const front = new Set(parseNumbers(input.front));
  if (front.size > 0) for (let i = 0; i < n; i++) if (front.has(table.number[kept[i]!]!)) kind[i] = FRONT;
  return { rows: kept, x: of(cx), y: of(cy), kind, mark: markOf(table, input.brush, input.picked, shown) };
}

/** The indices of points that are drawn: without outliers in either objective, by the rule of the history, and one of
 * those that would cover each other. */
function drawnOf({ rows, x, y, kind, mark }: Points, input: PlaneInput): { drawn: number[]; off: number } {
  const edge = (values: Float64Array, { goal }: PlaneAxis) => { const sign = goal === "minimize" ? 1 : -1; return input.clip ? sign * edgeOf(values, sign) : sign * Infinity; };
  const [ex, ey] = [edge(x, input.x), edge(y, input.y)];
  const within = (v: number, end: number, { goal }: PlaneAxis) => (goal === "minimize" ? v <= end : v >= end);
  const near = (i: number) => kind[i] === FRONT || (within(x[i]!, ex, input.x) && within(y[i]!, ey, input.y));
  let [left, right, low, high, kept] = [Infinity, -Infinity, Infinity, -Infinity, 0];
  for (let i = 0; i < rows.length; i++) {
    if (!near(i)) continue;
    kept++;
    [left, right, low, high] = [Math.min(left, x[i]!), Math.max(right, x[i]!), Math.min(low, y[i]!), Math.max(high, y[i]!)];
  }
  const taken = new Uint8Array(2 * KINDS * (CELLS_ACROSS + 1) * (CELLS_UP + 1));
  const cellOf = (i: number) => (kind[i]! + (mark?.rows[rows[i]!] === 1 ? KINDS : 0)) * (CELLS_ACROSS + 1) * (CELLS_UP + 1) + Math.floor((CELLS_ACROSS * (x[i]! - left)) / (right - left || 1)) * (CELLS_UP + 1) + Math.floor((CELLS_UP * (y[i]! - low)) / (high - low || 1));
  const drawn: number[] = [];
  for (let i = 0; i < rows.length; i++) {
    if (!near(i)) continue;
    if (kept > ALL_DRAWN && kind[i] !== FRONT) {
      const cell = cellOf(i);
      if (taken[cell] === 1) continue;
      taken[cell] = 1;
    }
    drawn.push(i);
  }
  return { drawn: drawn.sort((a, b) => x[a]! - x[b]! || y[a]! - y[b]!), off: rows.length - kept };
}

export function planeOf(table: Table, input: PlaneInput): Plane {
  const points = pointsOf(table, input);
  const { rows, x, y, kind, mark } = points;
  const { drawn, off } = drawnOf(points, input);
  let [onFront, highlighted] = [0, 0];
  for (let i = 0; i < rows.length; i++) {
    if (kind[i] === FRONT) onFront++;
    if (mark?.rows[rows[i]!] === 1) highlighted++;
  }
  return {
    row: Uint32Array.from(drawn, (i) => rows[i]!), x: Float64Array.from(drawn, (i) => x[i]!), y: Float64Array.from(drawn, (i) => y[i]!), kind: Uint8Array.from(drawn, (i) => kind[i]!),
    marked: Uint8Array.from(drawn, (i) => (mark?.rows[rows[i]!] === 1 ? 1 : 0)),
    count: rows.length, onFront, off, highlighted: mark && highlighted, isInfeasible: kind.includes(INFEASIBLE),
  };
}

const WORDS = ["beaten", "infeasible", "front"];

/** All points as the text of a CSV file, in the order of the trials. `heads`: names of the two objectives. */
export function planeCsv(table: Table, { heads, ...input }: PlaneInput & { heads: readonly [string, string] }): string {
  const { rows, x, y, kind, mark } = pointsOf(table, input);
  function* lines() {
    for (let i = 0; i < rows.length; i++) yield [table.number[rows[i]!]!, x[i]!, y[i]!, WORDS[kind[i]!]!, mark ? mark.rows[rows[i]!]! : 0];
  }
  return csvOf(["number", ...heads, "kind", "highlighted"], lines());
}
