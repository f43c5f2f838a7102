/* Ranges and picked trials as they stand in the address, and the rows that they highlight. Pure: the
 * worker uses it too. */
import type { Column, Table } from "./columns";
import { formatNumbers, parseNumbers } from "./numbers";

export { formatNumbers, parseNumbers };

/** Lowest and highest value, either may be absent; or words. */
export type Range = { min: number | null; max: number | null } | { words: readonly string[] };
export type Brushes = ReadonlyMap<string, Range>;

export interface Highlight {
  /** 1 for each highlighted row. */
  rows: Uint8Array;
  count: number;
}

export function highlightOf(table: Table, ranges: Brushes, chosen: ReadonlySet<number>, shown: Uint8Array | null): Highlight {
  const rows = new Uint8Array(table.n);
  if (ranges.size > 0) {
    rows.fill(1);
    for (const [name, range] of ranges) keep(rows, table.column(name), range);
    if (shown) for (let i = 0; i < rows.length; i++) rows[i]! &= shown[i] ?? 0;
  }
  for (const number of chosen) {
    const row = table.rowOf(number);
    if (row >= 0) rows[row] = 1;
  }
  let count = 0;
  for (let i = 0; i < rows.length; i++) count += rows[i]!;
  return { rows, count };
}

/** Unmark the rows whose value is outside of a range, or that have none. */
function keep(rows: Uint8Array, column: Column | undefined, range: Range): void {
  if (column === undefined) rows.fill(0);
  else if (column.kind === "number" && "min" in range) {
    const [low, high] = [range.min ?? -Infinity, range.max ?? Infinity];
    const { values } = column;
    for (let i = 0; i < rows.length; i++) if (!(values[i]! >= low && values[i]! <= high)) rows[i] = 0;
  } else if (column.kind === "words" && "words" in range) {
    const wanted = new Set(range.words);
    const inside = column.words.map((w) => wanted.has(w));
    for (let i = 0; i < rows.length; i++) if (inside[column.values[i]!] !== true) rows[i] = 0;
  } else rows.fill(0);
}

/** The highlighted rows as the address has them; null: nothing is highlighted. */
export function markOf(table: Table, brush: string, picked: string, shown: Uint8Array | null): Highlight | null {
  if (brush === "" && picked === "") return null;
  return highlightOf(table, parseBrushes(brush), new Set(parseNumbers(picked)), shown);
}

/* ---- texts of the address; what cannot be read is left out ---- */

const finite = (v: unknown): number | null => (typeof v === "number" && Number.isFinite(v) ? v : null);

export function parseBrushes(text: string): Brushes {
  const found = new Map<string, Range>();
  let given: unknown = null;
  try {
    given = JSON.parse(text);
  } catch {
    return found;
  }
  if (given === null || typeof given !== "object" || Array.isArray(given)) return found;
  for (const [name, range] of Object.entries(given as Record<string, unknown>)) {
    if (Array.isArray(range) && range.length === 2) found.set(name, { min: finite(range[0]), max: finite(range[1]) });
    else if (range !== null && typeof range === "object" && Array.isArray((range as { in?: unknown }).in)) found.set(name, { words: (range as { in: unknown[] }).in.map(String) });
  }
  return found;
}

export function formatBrushes(ranges: Brushes): string | null {
  if (ranges.size === 0) return null;
  return JSON.stringify(Object.fromEntries([...ranges].map(([name, r]) => [name, "words" in r ? { in: r.words } : [r.min, r.max]])));
}
