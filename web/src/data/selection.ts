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
import { emptyTable, type Table } from "./columns";
import { formatBrushes, formatNumbers, highlightOf, parseBrushes, parseNumbers, type Brushes, type Highlight, type Range } from "./marks";

export { formatBrushes, formatNumbers, highlightOf, parseBrushes, parseNumbers, type Brushes, type Highlight, type Range } from "./marks";

export const filterText = computed(() => route.value.query.get("filter") ?? "");
export const colourColumn = computed(() => route.value.query.get("colour") ?? "value");
export const brushText = computed(() => route.value.query.get("brush") ?? "");
export const pickedText = computed(() => route.value.query.get("picked") ?? "");

export const brushes = computed<Brushes>(() => parseBrushes(brushText.value));
export const picked = computed<ReadonlySet<number>>(() => new Set(parseNumbers(pickedText.value)));

/** The rows of the current sweep's table that pass the filter: 1 for each that does. Null: all.
 * Written by the data of the sweep. */
export const shownRows = signal<Uint8Array | null>(null);
/** The current sweep's table. Written by the data of the sweep. */
export const currentTable = signal<Table>(emptyTable());

/** The highlighted trials; null: none are, and every trial is drawn in full. */
export const highlight = computed<Highlight | null>(() => {
  const table = currentTable.value;
  if (brushes.value.size === 0 && picked.value.size === 0) return null;
  return highlightOf(table, brushes.value, picked.value, shownRows.value);
});

/** The numbers of the highlighted trials, ascending. */
export function highlightedNumbers(table: Table, mark: Highlight | null): number[] {
  const numbers: number[] = [];
  if (mark) for (let i = 0; i < table.n; i++) if (mark.rows[i] === 1) numbers.push(table.number[i]!);
  return numbers;
}

/** Set or (null) remove the ranges of columns. */
export function brushAll(ranges: Iterable<readonly [column: string, range: Range | null]>): void {
  const next = new Map(brushes.value);
  for (const [column, range] of ranges) {
    if (range === null) next.delete(column);
    else next.set(column, range);
  }
  choose({ brush: formatBrushes(next) });
}

export const brush = (column: string, range: Range | null): void => brushAll([[column, range]]);

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
