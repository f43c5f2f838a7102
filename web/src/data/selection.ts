/* What the views of one sweep share: which trials are shown, which of them are highlighted, and by
 * what they are coloured. All of it is in the address:
 *   filter=EXPRESSION              the trials that are shown (filter.ts has the language)
 *   brush=JSON                     ranges and words by column: {"param:lr":[0.01,0.1],"state":{"in":["failed"]}}
 *   picked=0,3,7-9                 trials chosen one by one
 *   colour=COLUMN                  the column that colours the trials; without it the sweep's metric
 *
 * A trial is highlighted if it is picked, or if there is a brush and it lies within every range. A
 * brush never reaches trials that the filter hides. */
import { computed, signal } from "@preact/signals";
import { choose, route } from "../route";
import { emptyTable, type Column, type Table } from "./columns";

/** Lowest and highest value, either may be absent; or words. */
export type Range = { min: number | null; max: number | null } | { words: readonly string[] };
export type Brushes = ReadonlyMap<string, Range>;

export const filterText = computed(() => route.value.query.get("filter") ?? "");
export const colourColumn = computed(() => route.value.query.get("colour") ?? "value");
const brushText = computed(() => route.value.query.get("brush") ?? "");
const pickedText = computed(() => route.value.query.get("picked") ?? "");

export const brushes = computed<Brushes>(() => parseBrushes(brushText.value));
export const picked = computed<ReadonlySet<number>>(() => new Set(parseNumbers(pickedText.value)));

/** The rows of the current sweep's table that pass the filter: 1 for each that does. Null: all.
 * Written by the data of the sweep. */
export const shownRows = signal<Uint8Array | null>(null);
/** The current sweep's table. Written by the data of the sweep. */
export const currentTable = signal<Table>(emptyTable());

export interface Highlight {
  /** 1 for each highlighted row. */
  rows: Uint8Array;
  count: number;
}

/** The highlighted trials; null: none are, and every trial is drawn in full. */
export const highlight = computed<Highlight | null>(() => {
  const table = currentTable.value;
  if (brushes.value.size === 0 && picked.value.size === 0) return null;
  return highlightOf(table, brushes.value, picked.value, shownRows.value);
});

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

/** The numbers of the highlighted trials, ascending. */
export function highlightedNumbers(table: Table, mark: Highlight | null): number[] {
  const numbers: number[] = [];
  if (mark) for (let i = 0; i < table.n; i++) if (mark.rows[i] === 1) numbers.push(table.number[i]!);
  return numbers;
}

/** Set or (null) remove the range of a column. */
export function brush(column: string, range: Range | null): void {
  const next = new Map(brushes.value);
  if (range === null) next.delete(column);
  else next.set(column, range);
  choose({ brush: formatBrushes(next) });
}

/** Add a trial to the picked ones, or remove it. */
export function pick(number: number, on = !picked.value.has(number)): void {
  const next = new Set(picked.value);
  if (on) next.add(number);
  else next.delete(number);
  choose({ picked: formatNumbers([...next]) });
}

export function pickOnly(numbers: readonly number[]): void {
  choose({ picked: formatNumbers(numbers) });
}

/** Nothing is highlighted any more. */
export function clearSelection(): void {
  choose({ brush: null, picked: null });
}

export const setFilter = (text: string): void => choose({ filter: text === "" ? null : text });
export const setColour = (column: string | null): void => choose({ colour: column === "value" ? null : column });

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

const MOST_NUMBERS = 1_000_000;

/** "0,3,7-9" */
export function parseNumbers(text: string): number[] {
  const all: number[] = [];
  for (const part of text.split(",")) {
    const [, from, to] = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(part.trim()) ?? [];
    if (from === undefined) continue;
    for (let n = Number(from); n <= Number(to ?? from) && all.length < MOST_NUMBERS; n++) all.push(n);
  }
  return all;
}

export function formatNumbers(numbers: readonly number[]): string | null {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === sorted[j]! + 1) j++;
    parts.push(j === i ? String(sorted[i]) : j === i + 1 ? `${sorted[i]},${sorted[j]}` : `${sorted[i]}-${sorted[j]}`);
    i = j + 1;
  }
  return parts.length === 0 ? null : parts.join(",");
}
