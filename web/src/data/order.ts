/* The order of rows by one column: a radix sort, because a comparison sort of 100,000 rows takes
 * longer than a view may. Stable; rows without a value come last in either direction. */
import { MISSING, type Column } from "./columns";

const words = new Intl.Collator(undefined, { numeric: true });

/** The place of each word among all words of the column. */
function ranksOf(list: readonly string[]): Uint32Array {
  const order = list.map((_, i) => i).sort((a, b) => words.compare(list[a]!, list[b]!) || a - b);
  const ranks = new Uint32Array(list.length);
  order.forEach((word, rank) => { ranks[word] = rank; });
  return ranks;
}

/** Arrays that are used again by the next order: each sort of 100,000 rows would leave six megabytes to collect. */
const scratch = new Map<string, Uint32Array>();

function scratchOf(name: string, n: number): Uint32Array {
  let held = scratch.get(name);
  if (held === undefined || held.length < n) {
    held = new Uint32Array(n);
    scratch.set(name, held);
  }
  return held.subarray(0, n);
}

/** Keys whose order as whole numbers of 64 bits is that of the column's values: the lower halves,
 * the upper halves. */
function keysOf(c: Column, rows: Uint32Array, descending: boolean): [Uint32Array, Uint32Array] {
  const [low, high] = [scratchOf("low", rows.length).fill(0), scratchOf("high", rows.length)];
  if (c.kind === "words") {
    const ranks = ranksOf(c.words);
    for (let i = 0; i < rows.length; i++) high[i] = ranks[c.values[rows[i]!]!]!;
  } else {
    const halves = new Uint32Array(c.values.buffer, c.values.byteOffset, 2 * c.values.length); // little-endian, as every browser's machine
    for (let i = 0; i < rows.length; i++) {
      const [a, b] = [halves[2 * rows[i]!]!, halves[2 * rows[i]! + 1]!];
      // Of a negative number all bits are turned over, of another one the sign; -0 is 0.
      const negative = b >>> 31 === 1 && (a !== 0 || b !== 0x80000000);
      low[i] = negative ? ~a : a;
      high[i] = negative ? ~b : b | 0x80000000;
    }
  }
  if (descending) for (let i = 0; i < rows.length; i++) [low[i], high[i]] = [~low[i]!, ~high[i]!];
  return [low, high];
}

const DIGIT = 1 << 16;

/** One pass of the sort: by 16 bits of the keys of `order`'s entries. The result is `order` or `next`. */
function pass(order: Uint32Array, next: Uint32Array, keys: Uint32Array, shift: number): Uint32Array {
  const starts = scratchOf("starts", DIGIT).fill(0);
  for (let i = 0; i < keys.length; i++) starts[(keys[i]! >>> shift) & (DIGIT - 1)]!++;
  if (order.length > 0 && starts[(keys[0]! >>> shift) & (DIGIT - 1)] === keys.length) return order; // all are equal
  let sum = 0;
  for (let d = 0; d < DIGIT; d++) {
    const here = starts[d]!;
    starts[d] = sum;
    sum += here;
  }
  for (let i = 0; i < order.length; i++) {
    const digit = (keys[order[i]!]! >>> shift) & (DIGIT - 1);
    next[starts[digit]!++] = order[i]!;
  }
  return next;
}

/** The rows that have a value, and those that have none. */
function parted(all: Uint32Array, column: Column): { with_: Uint32Array; without: Uint32Array } {
  const [with_, without] = [scratchOf("with", all.length), scratchOf("without", all.length)];
  let [n, m] = [0, 0];
  const { values } = column;
  const words = column.kind === "words";
  for (let i = 0; i < all.length; i++) {
    const v = values[all[i]!]!;
    if (words ? v === MISSING : v !== v) without[m++] = all[i]!; // NaN is no number, not even itself
    else with_[n++] = all[i]!;
  }
  return { with_: with_.subarray(0, n), without: without.subarray(0, m) };
}

/** The rows (those that `shown` has, or all n) in the order of a column; without one, of their
 * numbers. */
export function orderRows(n: number, shown: Uint8Array | null, column: Column | undefined, descending: boolean): Uint32Array {
  let kept = 0;
  const rows = scratchOf("rows", n);
  for (let i = 0; i < n; i++) if (shown === null || shown[i] === 1) rows[kept++] = i;
  const all = rows.subarray(0, kept);
  if (column === undefined) return descending ? all.slice().reverse() : all.slice();
  const { with_, without } = parted(all, column);
  const [low, high] = keysOf(column, with_, descending);
  let [order, next] = [scratchOf("order", with_.length), scratchOf("next", with_.length)];
  for (let i = 0; i < order.length; i++) order[i] = i;
  for (const [keys, shift] of [[low, 0], [low, 16], [high, 0], [high, 16]] as const) if (pass(order, next, keys, shift) === next) [order, next] = [next, order];
  const sorted = new Uint32Array(kept);
  for (let i = 0; i < order.length; i++) sorted[i] = with_[order[i]!]!;
  sorted.set(without, order.length);
  return sorted;
}
