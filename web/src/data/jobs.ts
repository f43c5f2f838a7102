/* What the worker computes from a table. A job is a pure function of the table and its input, and
 * answers with plain objects and typed arrays. A view adds its own jobs here. */
import type { Column, Table } from "./columns";
import { FilterError, filterRows } from "./filter";
import { historyOf } from "../parts/history";
import { orderRows } from "./order";

export interface RowsInput {
  filter: string;
  /** A column; "": in the order of the trials' numbers. */
  sort: string;
  descending: boolean;
  /** Only trials in this state; "": all. */
  state: string;
  /** Only trials of this group; "": all. */
  group: string;
}

export interface Rows {
  /** The rows that are shown, in order. */
  order: Uint32Array;
  /** 1 for each row that passes the filter (in any state); null: all do. */
  shown: Uint8Array | null;
  /** By state, of the rows that pass the filter. */
  counts: Record<string, number>;
  /** Why the filter cannot be used, with its column in the text. All trials are shown then. */
  error: string | null;
}

/* States in the order of TRIAL_STATES, which is no order of the alphabet. */
const STATES = ["completed", "pruned", "failed", "cancelled", "running", "paused", "queued"];

function keyOf(table: Table, name: string): Column | undefined {
  if (name === "" || name === "number") return undefined;
  if (name !== "state") return table.column(name);
  const places = table.state.words.map((w) => STATES.indexOf(w));
  return { name, kind: "number", values: Float64Array.from(table.state.values, (w) => places[w] ?? NaN) };
}

function rows(table: Table, input: RowsInput): Rows {
  let [shown, error]: [Uint8Array | null, string | null] = [null, null];
  try {
    shown = filterRows(input.filter, table);
  } catch (thrown) {
    if (!(thrown instanceof FilterError)) throw thrown;
    error = thrown.message;
  }
  const { words, values } = table.state;
  const found = new Uint32Array(words.length);
  for (let i = 0; i < table.n; i++) if (shown === null || shown[i] === 1) found[values[i]!]!++;
  const counts = Object.fromEntries(words.map((word, i) => [word, found[i]!]));
  let kept = shown;
  for (const [column, word] of [[table.state, input.state], [table.column("group"), input.group]] as const) {
    if (word === "") continue;
    const [wanted, before]: [number, Uint8Array | null] = [column?.kind === "words" ? column.words.indexOf(word) : -1, kept];
    kept = new Uint8Array(table.n);
    if (wanted >= 0 && column) for (let i = 0; i < table.n; i++) kept[i] = (before === null || before[i] === 1) && column.values[i] === wanted ? 1 : 0;
  }
  return { order: orderRows(table.n, kept, keyOf(table, input.sort), input.descending), shown, counts, error };
}

export const JOBS = { rows, history: historyOf };

export type JobName = keyof typeof JOBS;
export type JobInput<K extends JobName> = Parameters<(typeof JOBS)[K]>[1];
export type JobOutput<K extends JobName> = ReturnType<(typeof JOBS)[K]>;
