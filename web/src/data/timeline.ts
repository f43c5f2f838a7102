/* Where and when the attempts of a sweep ran: lanes of runners with boxes. Jobs of the worker, which
 * holds the attempts; the page gets boxes of about a pixel or more.
 *
 * The answer of GET /v1/sweeps/{sweep}/attempts has the columns `trial`, `attempt`, `seat` (NaN: the
 * attempt itself), `runner`, `client`, `group`, `began_at`, `ended_at` (NaN: it runs) and `outcome`;
 * a part has all attempts of the trials that changed. An attempt of a gang has no runner; its seats
 * have.
 *
 * A slot is not part of the record, so lanes are found: what a runner ran at the same time lies in
 * different lanes, each in the first one that was free. The trials of a group share a lane, as they
 * share a process. */
import { readColumns } from "./columnar";
import { wordAt, type Column, type Table } from "./columns";
import { shownOf } from "./filter";
import { markOf } from "./marks";

interface Run {
  trial: number;
  attempt: number;
  /** NaN: no seat of a gang. */
  seat: number;
  place: string;
  group: string | null;
  began: number;
  ended: number;
  outcome: string;
}

export class Attempts {
  runs: Run[] = [];
  version: string | null = null;

  /** Take an answer of the server. */
  take(buffer: ArrayBuffer): void {
    const file = readColumns(buffer);
    const column = (name: string): Column => {
      const found = file.columns.find((c) => c.name === name);
      if (!found) throw new Error(`The attempts of the server cannot be read: there is no column '${name}'`);
      return found;
    };
    const numbers = (name: string) => column(name).values;
    const [trial, attempt, seat, began, ended] = ["trial", "attempt", "seat", "began_at", "ended_at"].map(numbers) as [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];
    const [runner, client, group, outcome] = ["runner", "client", "group", "outcome"].map(column) as [Column, Column, Column, Column];
    const fresh: Run[] = [];
    for (let i = 0; i < file.rows; i++) {
      const place = wordAt(runner, i) ?? wordAt(client, i);
      if (Number.isNaN(began[i]!) || (place === null && trial[i + 1] === trial[i] && !Number.isNaN(seat[i + 1]!))) continue; // its seats follow
      fresh.push({ trial: trial[i]!, attempt: attempt[i]!, seat: seat[i]!, place: place ?? "no runner", group: wordAt(group, i), began: began[i]!, ended: ended[i]!, outcome: wordAt(outcome, i) ?? "running" });
    }
    const changed = new Set<number>(trial);
    this.runs = file.whole ? fresh : [...this.runs.filter((r) => !changed.has(r.trial)), ...fresh];
    this.version = file.version;
  }
}

export interface TimelineInput {
  version: string;
  /** The part that is drawn, in ms since 1970; null: from the first to the last. */
  from: number | null;
  to: number | null;
  filter: string;
  brush: string;
  picked: string;
}

export interface Place {
  name: string;
  /** Its first lane, and how many it has. */
  lane: number;
  lanes: number;
  runs: number;
  /** Of the time between its first beginning and its last end: how much of its lanes was taken. */
  busy: number;
}

export interface Box {
  lane: number;
  /** The runs of a group lie above each other: which of how many. */
  part: number;
  parts: number;
  began: number;
  ended: number;
  outcome: string;
  /** A run; null: several that would be less than a pixel. */
  run: { trial: number; attempt: number; seat: number | null; place: string; group: string | null } | null;
  /** How many. */
  count: number;
  marked: boolean;
}

export interface Timeline {
  /** Of attempts, and of the seats of gangs. */
  runs: number;
  /** Attempts; that of a gang is one, whatever its seats. */
  attempts: number;
  seats: number;
  /** The whole record, in ms since 1970. */
  first: number;
  last: number;
  places: Place[];
  lanes: number;
  boxes: Box[];
  /** Runs of places that have no lane, because there are too many. */
  left: number;
  marked: boolean;
  outcomes: string[];
}

export const MOST_LANES = 256;
const FINE = 1600; // boxes narrower than this part of the width are joined

const names = new Intl.Collator("en", { numeric: true });

/** What takes a lane: a run, or the runs of a group. */
interface Unit {
  runs: Run[];
  began: number;
  ended: number;
}

const endOf = (r: Run, now: number) => (Number.isNaN(r.ended) ? now : r.ended);

/** The first lane that is free at `began`; `ends`: until when each one is taken. */
function laneFor(ends: number[], began: number, ended: number): number {
  let lane = ends.findIndex((end) => end <= began);
  if (lane < 0) lane = ends.length;
  ends[lane] = ended;
  return lane;
}

function unitsOf(runs: readonly Run[], now: number): Unit[] {
  const groups = new Map<string, Unit>();
  const units: Unit[] = [];
  for (const r of runs) {
    const known = r.group === null ? undefined : groups.get(r.group);
    if (known) {
      known.runs.push(r);
      known.began = Math.min(known.began, r.began);
      known.ended = Math.max(known.ended, endOf(r, now));
      continue;
    }
    const made: Unit = { runs: [r], began: r.began, ended: endOf(r, now) };
    if (r.group !== null) groups.set(r.group, made);
    units.push(made);
  }
  return units.sort((a, b) => a.began - b.began);
}

/** Adds boxes of one lane in the order of time, and joins those that are too narrow to be told apart. */
class Boxes {
  readonly all: Box[] = [];
  readonly #last = new Map<string, Box>();
  readonly #from: number;
  readonly #to: number;
  readonly #fine: number;

  constructor(from: number, to: number) {
    [this.#from, this.#to, this.#fine] = [from, to, (to - from) / FINE];
  }

  add(box: Box): void {
    if (box.ended < this.#from || box.began > this.#to) return;
    const key = `${box.lane} ${box.part} ${box.parts}`;
    const before = this.#last.get(key);
    const isNarrow = box.ended - box.began < this.#fine;
    if (before && isNarrow && before.outcome === box.outcome && before.marked === box.marked && box.began - before.ended < this.#fine && before.ended - before.began < 40 * this.#fine && (before.run === null || before.ended - before.began < this.#fine)) {
      before.ended = Math.max(before.ended, box.ended);
      before.count += box.count;
      before.run = null;
      return;
    }
    this.all.push(box);
    this.#last.set(key, box);
  }
}

export function timelineOf(attempts: Attempts, table: Table, input: TimelineInput, now: number): Timeline {
  const shown = shownOf(input.filter, table);
  const mark = markOf(table, input.brush, input.picked, shown);
  const is = (rows: Uint8Array | null, r: Run) => { const row = table.rowOf(r.trial); return row >= 0 && rows !== null && rows[row] === 1; };
  const runs = shown === null ? attempts.runs : attempts.runs.filter((r) => is(shown, r));
  let [first, last] = [Infinity, -Infinity];
  const byPlace = new Map<string, Run[]>();
  for (const r of runs) {
    [first, last] = [Math.min(first, r.began), Math.max(last, endOf(r, now))];
    const its = byPlace.get(r.place);
    if (its) its.push(r);
    else byPlace.set(r.place, [r]);
  }
  const boxes = new Boxes(input.from ?? first, input.to ?? last);
  const places: Place[] = [];
  let [lanes, left] = [0, 0];
  for (const name of [...byPlace.keys()].sort(names.compare)) {
    const its = byPlace.get(name)!;
    if (lanes >= MOST_LANES) { left += its.length; continue; }
    const ends: number[] = [];
    let taken = 0;
    const units = unitsOf(its, now);
    for (const unit of units) {
      const lane = lanes + laneFor(ends, unit.began, unit.ended);
      taken += unit.ended - unit.began;
      const inner: number[] = [];
      const parts = unit.runs.sort((a, b) => a.began - b.began).map((r) => laneFor(inner, r.began, endOf(r, now)));
      unit.runs.forEach((r, i) => boxes.add({ lane, part: parts[i]!, parts: inner.length, began: r.began, ended: endOf(r, now), outcome: r.outcome, run: { trial: r.trial, attempt: r.attempt, seat: Number.isNaN(r.seat) ? null : r.seat, place: r.place, group: r.group }, count: 1, marked: is(mark?.rows ?? null, r) }));
    }
    const span = Math.max(...ends) - (units[0]?.began ?? 0);
    places.push({ name, lane: lanes, lanes: ends.length, runs: its.length, busy: span > 0 ? taken / (span * ends.length) : 0 });
    lanes += ends.length;
  }
  const seats = runs.filter((r) => !Number.isNaN(r.seat));
  const gangs = new Set(seats.map((r) => `${r.trial} ${r.attempt}`)).size;
  return { runs: runs.length, attempts: runs.length - seats.length + gangs, seats: seats.length, first, last, places, lanes, boxes: boxes.all.filter((b) => b.lane < MOST_LANES + 64), left, marked: mark !== null, outcomes: [...new Set(runs.map((r) => r.outcome))].sort() };
}
