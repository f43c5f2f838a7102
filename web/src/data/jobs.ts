/* What the worker computes from a table. A job is a pure function of the table, its input and the
 * further files that the worker holds, and answers with plain objects and typed arrays. A view adds
 * its own jobs here. */
import { foretoldOf, historyCsv, historyOf } from "../parts/history";
import { valueAt, type Column, type Table } from "./columns";
import { explore } from "./explore";
import { FilterError, filterRows, shownOf } from "./filter";
import { markOf } from "./marks";
import { orderRows } from "./order";
import { csvOf } from "../parts/csv";
import { planeCsv, planeOf } from "./plane";
import { Attempts, timelineOf, type Timeline, type TimelineInput } from "./timeline";
import { curvesOf, Points, type Curves, type CurvesInput } from "./points";

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

export interface CsvInput {
  /** The rows of this, in its order … */
  rows: RowsInput;
  /** … of them only completed trials with a value in this column; null: all. */
  metric: string | null;
  brush: string;
  picked: string;
  /** "only": highlighted rows, ascending, whatever the filter hides. "column": all rows, and whether
   * each is highlighted. */
  highlighted: "only" | "column" | "ignored";
  /** Columns of the table with their headings; null: all of them. */
  columns: readonly { name: string; head: string }[] | null;
}

/** Rows as the text of a CSV file. */
function csv(table: Table, input: CsvInput): string {
  const mark = input.highlighted === "ignored" ? null : markOf(table, input.brush, input.picked, shownOf(input.rows.filter, table));
  let order = rows(table, input.rows).order;
  if (input.highlighted === "only" && mark) order = Uint32Array.from({ length: table.n }, (_, row) => row).filter((row) => mark.rows[row] === 1);
  if (input.metric !== null) {
    const [metric, completed] = [table.column(input.metric), table.state.words.indexOf("completed")];
    order = order.filter((row) => table.state.values[row] === completed && valueAt(metric, row) !== null);
  }
  const chosen = input.columns ?? [...table.columns.keys()].filter((name) => name !== "number" && name !== "duration").map((name) => ({ name, head: name }));
  const columns = chosen.map((c) => table.column(c.name));
  const extra = input.highlighted === "column" ? ["highlighted"] : [];
  function* lines() {
    for (const row of order) yield [table.number[row]!, ...columns.map((c) => valueAt(c, row)), ...extra.map(() => (mark ? mark.rows[row]! : 0))];
  }
  return csvOf(["number", ...chosen.map((c) => c.head), ...extra], lines());
}

/** Files of a sweep beside its table, in the worker only. */
export interface Held {
  /** By metric. */
  points: Map<string, Points>;
  attempts: Attempts;
}

const curves = (table: Table, input: CurvesInput, held?: Held): Curves => curvesOf(held?.points.get(input.metric) ?? new Points(), table, input);

function curvesCsv(table: Table, input: CurvesInput, held?: Held): string {
  const shown = shownOf(input.filter, table);
  const mark = markOf(table, input.brush, input.picked, shown);
  function* lines() {
    for (const [number, line] of held?.points.get(input.metric)?.lines ?? []) {
      const row = table.rowOf(number);
      if (row < 0 || (shown && shown[row] === 0)) continue;
      const { step, time, value } = line;
      for (let i = 0; i < step.length; i++) yield [number, step[i]!, Number.isNaN(time[i]!) ? null : time[i]!, value[i]!, mark ? mark.rows[row]! : 0];
    }
  }
  return csvOf(["number", "step", "time", input.metric, "highlighted"], lines());
}

const timeline = (table: Table, input: TimelineInput, held?: Held): Timeline => timelineOf(held?.attempts ?? new Attempts(), table, input, Date.now());

function timelineCsv(_table: Table, _input: null, held?: Held): string {
  const iso = (ms: number) => (Number.isNaN(ms) ? null : new Date(ms).toISOString());
  function* lines() {
    for (const r of held?.attempts.runs ?? []) yield [r.trial, r.attempt, Number.isNaN(r.seat) ? null : r.seat, r.place, r.group, iso(r.began), iso(r.ended), r.outcome];
  }
  return csvOf(["number", "attempt", "seat", "runner", "group", "began_at", "ended_at", "outcome"], lines());
}

export const JOBS = { rows, history: historyOf, historyCsv, foretold: foretoldOf, plane: planeOf, planeCsv, explore, csv, curves, curvesCsv, timeline, timelineCsv };

/** Jobs that need what only the worker holds. */
export const IN_WORKER: ReadonlySet<JobName> = new Set(["historyCsv", "curves", "curvesCsv", "timeline", "timelineCsv"]);

export type JobName = keyof typeof JOBS;
export type JobInput<K extends JobName> = Parameters<(typeof JOBS)[K]>[1];
export type JobOutput<K extends JobName> = ReturnType<(typeof JOBS)[K]>;
