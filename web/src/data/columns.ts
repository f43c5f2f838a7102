/* All trials of a sweep as columns: one typed array for each value that trials have.
 *
 * Rows are in the order of the trials' numbers. A column holds numbers (NaN: no value) or words (an
 * index into `words`; MISSING: no value). The names are those of the API: `number`, `state`,
 * `value`, `attempt`, `infeasible`, `created_at`, `started_at`, `ended_at`, `running_since` (milliseconds since 1970), `ran_ms`, `runner`,
 * `client`, `group`, `rung`, `param:NAME`, `metric:NAME`, and more (docs/api.md). `duration` is
 * computed here.
 *
 * A Table is a view of a Store at one version. The store changes its arrays in place and extends
 * them, so a table of an older version is no frozen copy: it has as many rows as it had, with the
 * values of now. A new Table object says that something changed; compare objects, not contents. */
import type { Part } from "./columnar";

export const MISSING = 0xffffffff;

export interface NumberColumn {
  readonly name: string;
  readonly kind: "number";
  readonly values: Float64Array;
  /** Whether some trial has had a value above zero; undefined: not known. */
  readonly isPositive?: boolean;
  /** In a whole part: every row has this value, and `values` is empty. */
  readonly one?: number;
}

export interface WordColumn {
  readonly name: string;
  readonly kind: "words";
  readonly values: Uint32Array;
  readonly words: readonly string[];
  readonly one?: number;
}

export type Column = NumberColumn | WordColumn;

export interface Table {
  /** Rows. */
  readonly n: number;
  /** The event up to which the server's changes are in it. */
  readonly version: string;
  /** The number of the trial of each row, ascending. */
  readonly number: Uint32Array;
  readonly state: WordColumn;
  readonly columns: ReadonlyMap<string, Column>;
  column(name: string): Column | undefined;
  /** The row of a trial; -1: there is none. O(log n). */
  rowOf(number: number): number;
}

/** The place of `number` in the first n of ascending numbers; if it is not there, -1 minus the place
 * where it belongs. */
export function search(numbers: Uint32Array, n: number, number: number): number {
  if (number < n && numbers[number] === number) return number; // trials are numbered from 0, and rarely is one missing
  let [low, high] = [0, n];
  while (low < high) {
    const at = (low + high) >> 1;
    if (numbers[at]! < number) low = at + 1;
    else high = at;
  }
  return low < n && numbers[low] === number ? low : -1 - low;
}

const isMissing = (c: Column, row: number): boolean => (c.kind === "number" ? Number.isNaN(c.values[row]) : c.values[row] === MISSING);

/** The number in a row; null: none, or a column of words. */
export const numberAt = (c: Column | undefined, row: number): number | null => (c?.kind === "number" && !isMissing(c, row) ? c.values[row] ?? null : null);

/** The word in a row; null: none, or a column of numbers. */
export const wordAt = (c: Column | undefined, row: number): string | null => (c?.kind === "words" ? c.words[c.values[row] ?? MISSING] ?? null : null);

/** A row's value of any kind. */
export const valueAt = (c: Column | undefined, row: number): number | string | null => (c?.kind === "number" ? numberAt(c, row) : wordAt(c, row));

/** Milliseconds for which a trial has run by now, without the time in which it waited between its attempts; null: it has not
 * started. */
export function ranOf(table: Pick<Table, "column">, row: number, now: () => number): number | null {
  const at = (name: string) => numberAt(table.column(name), row);
  const start = at("started_at");
  if (start === null) return null;
  const since = at("running_since");
  const [ran, end] = [at("ran_ms"), at("ended_at")];
  if (ran === null && since === null) return (end ?? now()) - start;
  return (ran ?? 0) + (since === null ? 0 : now() - since);
}

/* A column that is computed: seconds for which the trial has run. */
export const DURATION = "duration";

function durationOf(columns: Map<string, Column>, n: number): Column | undefined {
  if (columns.get("started_at")?.kind !== "number" || columns.get("ended_at")?.kind !== "number") return undefined;
  const now = Date.now();
  const values = new Float64Array(n);
  const table = { column: (name: string) => columns.get(name) };
  for (let i = 0; i < n; i++) values[i] = (ranOf(table, i, () => now) ?? NaN) / 1000;
  const made: Column = { name: DURATION, kind: "number", values };
  columns.set(DURATION, made);
  return made;
}

/** The table of no trials. */
export function emptyTable(): Table {
  return new Store().table("0");
}

type Values = Float64Array | Uint32Array;

interface Held {
  name: string;
  kind: Column["kind"];
  isPositive: boolean;
  values: Values; // as long as the store's room
  /** All of `values` have this value, and other columns have the same array; undefined: the array is the column's own. */
  one?: number | undefined;
  words: string[];
  index: Map<string, number>; // of the words
}

const LEAST_ROOM = 64;

/** The length of the arrays for so many rows: many trials are rarely doubled while one looks at them, and every
 * column costs its room twice, here and in the worker. */
export const roomOf = (rows: number): number => rows + Math.max(LEAST_ROOM, rows >> 4);

export class Store {
  n = 0;
  #room = LEAST_ROOM;
  #number: Uint32Array = new Uint32Array(LEAST_ROOM);
  /** The numbers as a column; of its values the first #wideN are right. */
  #wide: Float64Array = new Float64Array(LEAST_ROOM);
  #wideN = 0;
  #held = new Map<string, Held>();
  /** Arrays of one value. A third of the columns of most sweeps say nothing, or of every trial the same. */
  readonly #shared = new Map<string, Values>();

  constructor() {
    this.#add("state", "words");
  }

  /** A view of what the store holds now. */
  table(version: string): Table {
    const n = this.n;
    const number = this.#number.subarray(0, n);
    const columns = new Map<string, Column>();
    for (const h of this.#held.values()) {
      const values = h.values.subarray(0, n);
      columns.set(h.name, h.kind === "number" ? { name: h.name, kind: "number", values: values as Float64Array, isPositive: h.isPositive } : { name: h.name, kind: "words", values: values as Uint32Array, words: h.words });
    }
    columns.set("number", { name: "number", kind: "number", values: this.#numbers() });
    return { n, version, number, state: columns.get("state") as WordColumn, columns, column: (name) => columns.get(name) ?? (name === DURATION ? durationOf(columns, n) : undefined), rowOf: (wanted) => Math.max(-1, search(number, n, wanted)) };
  }

  #numbers(): Float64Array {
    if (this.#wide.length < this.n) {
      this.#wide = new Float64Array(this.#room);
      this.#wideN = 0;
    }
    for (; this.#wideN < this.n; this.#wideN++) this.#wide[this.#wideN] = this.#number[this.#wideN]!;
    return this.#wide.subarray(0, this.n);
  }

  /** Take the rows of an answer of the server: all rows, or those that changed. A column that the
   * answer lacks keeps its values. */
  take(part: Part): void {
    if (part.whole) this.#replace(part);
    else this.#merge(part);
  }

  /** Whether there is a trial of this number. */
  has(number: number): boolean {
    return search(this.#number, this.n, number) >= 0;
  }

  /** Whether the trial runs in this attempt. */
  runs(number: number, attempt: number): boolean {
    const row = search(this.#number, this.n, number);
    const [state, its] = [this.#held.get("state"), this.#held.get("attempt")];
    return row >= 0 && state?.words[state.values[row]!] === "running" && (its === undefined || its.values[row] === attempt);
  }

  /** Set one number of a trial; nothing happens if there is no such trial. */
  set(number: number, column: string, value: number): void {
    const row = search(this.#number, this.n, number);
    const held = this.#held.get(column);
    if (row < 0 || held?.kind !== "number") return;
    this.#own(held);
    held.values[row] = value;
  }

  /** An array all of which has this value. */
  #arrayOf(kind: Column["kind"], one: number): Values {
    const key = `${kind} ${one}`;
    const known = this.#shared.get(key);
    if (known?.length === this.#room) return known;
    const made = (kind === "number" ? new Float64Array(this.#room) : new Uint32Array(this.#room)).fill(one);
    this.#shared.set(key, made);
    return made;
  }

  /** Give the column an array of its own. */
  #own(h: Held): void {
    if (h.one === undefined) return;
    h.values = extended(h.values.subarray(0, this.n), this.#room, nothingOf(h.kind));
    h.one = undefined;
  }

  #replace(part: Part): void {
    this.n = part.number.length;
    this.#wideN = 0;
    this.#room = roomOf(this.n);
    this.#number = extended(part.number, this.#room, 0);
    this.#held = new Map();
    for (const c of part.columns) {
      const words = c.kind === "words" ? [...c.words] : [];
      const values = c.one !== undefined ? this.#arrayOf(c.kind, c.one) : c.values.length === this.#room ? c.values : extended(c.values, this.#room, nothingOf(c.kind));
      this.#held.set(c.name, { name: c.name, kind: c.kind, isPositive: c.kind === "number" && (c.isPositive ?? values.some((v) => v > 0)), values, one: c.one, words, index: new Map(words.map((w, i) => [w, i])) });
    }
    if (!this.#held.has("state")) this.#add("state", "words");
  }

  #merge(part: Part): void {
    const given = new Map(part.columns.map((c) => [c.name, c]));
    for (const h of this.#held.values()) if (h.one !== undefined && !hasOnly(given.get(h.name), h)) this.#own(h);
    const rows = this.#rowsFor(part.number);
    for (const c of part.columns) {
      let held = this.#held.get(c.name);
      if (held !== undefined && held.kind !== c.kind && isEmpty(c)) { // a column without values says nothing of their kind
        for (const row of rows) held.values[row] = nothingOf(held.kind);
        continue;
      }
      if (held === undefined || held.kind !== c.kind) held = this.#add(c.name, c.kind);
      if (c.kind === "number") {
        for (let i = 0; i < rows.length; i++) {
          held.values[rows[i]!] = c.values[i]!;
          held.isPositive ||= c.values[i]! > 0;
        }
        continue;
      }
      const to = c.words.map((word) => indexOf(held, word));
      for (let i = 0; i < rows.length; i++) held.values[rows[i]!] = to[c.values[i]!] ?? MISSING;
    }
  }

  /** The row of each of the ascending numbers; rows for those that are new are made. */
  #rowsFor(numbers: Uint32Array): Uint32Array {
    const at = numbers.map((number) => { const row = search(this.#number, this.n, number); return row < 0 ? MISSING : row; });
    const fresh = numbers.filter((_, i) => at[i] === MISSING);
    if (fresh.length === 0) return at;
    this.#insert(fresh);
    return numbers.map((number) => search(this.#number, this.n, number));
  }

  /** Make rows for ascending numbers that have none. */
  #insert(fresh: Uint32Array): void {
    const before = this.n;
    this.#reserve(before + fresh.length);
    this.n = before + fresh.length;
    if (before > 0 && fresh[0]! < this.#number[before - 1]!) this.#wideN = 0; // rows move
    const own = [...this.#held.values()].filter((h) => h.one === undefined);
    const all: Values[] = [this.#number, ...own.map((h) => h.values)];
    // From the end: rows after a new one move towards the end.
    let [from, next] = [before - 1, fresh.length - 1];
    for (let to = this.n - 1; next >= 0; to--) {
      if (from >= 0 && this.#number[from]! > fresh[next]!) {
        for (const values of all) values[to] = values[from]!;
        from--;
        continue;
      }
      for (const h of own) h.values[to] = nothingOf(h.kind);
      this.#number[to] = fresh[next--]!;
    }
  }

  #reserve(n: number): void {
    if (n <= this.#room) return;
    this.#room = roomOf(n);
    this.#number = extended(this.#number, this.#room, 0);
    for (const h of this.#held.values()) h.values = h.one === undefined ? extended(h.values, this.#room, nothingOf(h.kind)) : this.#arrayOf(h.kind, h.one);
  }

  #add(name: string, kind: Column["kind"]): Held {
    const values = kind === "number" ? new Float64Array(this.#room).fill(NaN) : new Uint32Array(this.#room).fill(MISSING);
    const held: Held = { name, kind, isPositive: false, values, words: [], index: new Map() };
    this.#held.set(name, held);
    return held;
  }
}

const isEmpty = (c: Column): boolean => (c.kind === "number" ? c.values.every((v) => Number.isNaN(v)) : c.values.every((v) => v === MISSING));
const nothingOf = (kind: Column["kind"]): number => (kind === "number" ? NaN : MISSING);

/** Whether these rows of a column have no value but the one that all rows have. */
function hasOnly(c: Column | undefined, { kind, one, index }: Held): boolean {
  const isOne = (v: number) => v === one || (v !== v && one !== one);
  if (c === undefined || c.kind !== kind) return isOne(nothingOf(kind)) && (c === undefined || isEmpty(c));
  return c.values.every(c.kind === "number" ? isOne : (v) => (v === MISSING ? MISSING : index.get(c.words[v]!) ?? -1) === one);
}

function indexOf(held: Held, word: string): number {
  const known = held.index.get(word);
  if (known !== undefined) return known;
  held.words.push(word);
  held.index.set(word, held.words.length - 1);
  return held.words.length - 1;
}

function extended<T extends Values>(values: T, room: number, nothing: number): T {
  const made = new (values.constructor as new (n: number) => T)(room);
  made.set(values);
  made.fill(nothing, values.length);
  return made;
}
