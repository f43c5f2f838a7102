/* The result of a job for a component. Of few trials it is computed at once, so that it changes in
 * the same frame as everything else; of more the worker computes it, and the last result is shown
 * until then. The first result of each component has a frame of its own, as it makes charts and rows.
 *
 * What the user changes is computed at once. A job that nothing but the table or the version of a file causes waits for
 * its turn (turns.ts): its cost is the time of the worker and that of showing the result. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { messageOf, isAbort } from "../api/http";
import type { Table } from "./columns";
import { IN_WORKER, JOBS, type JobInput, type JobName, type JobOutput } from "./jobs";
import type { SweepTable } from "./sweep_table";
import { costOf, inCalmFrame, type Turns } from "./turns";

const AT_ONCE = 3000;

export interface Done<K extends JobName> {
  output: JobOutput<K>;
  /** The table that it was computed from, or a later one. */
  table: Table;
}

export interface Result<K extends JobName> {
  done: Done<K> | null;
  error: string | null;
  /** `done` is of what the user chose before; the worker still computes. */
  isOld: boolean;
}

/** `wanted`: whether the result is looked at; while it is not, the last one stays. */
export function useJob<K extends JobName>(of: SweepTable, job: K, input: JobInput<K>, wanted = true): Result<K> {
  const table = of.table.value;
  const key = JSON.stringify(input);
  const small = table.n <= AT_ONCE && !IN_WORKER.has(job);
  const [begun, setBegun] = useState(false);
  const isThere = table.n > 0 || of.loaded.value;
  useEffect(() => { if (isThere && small) inCalmFrame(() => setBegun(true)); }, [isThere, small]);
  const last = useRef<Done<K> | null>(null);
  const now = useMemo(() => (small && begun && (wanted || last.current === null) ? { output: (JOBS[job] as (t: Table, i: JobInput<K>) => JobOutput<K>)(table, input), table } : last.current), [table, key, small, begun, wanted]);
  last.current = now;
  const [late, setLate] = useState<{ done: Done<K> | null; error: string | null; choice: string }>({ done: null, error: null, choice: "" });
  const latest = useRef(input);
  latest.current = input;
  const runs = useMemo(() => new Runs(of.turns), [of]);
  useEffect(() => () => runs.stop(), [runs]);
  useEffect(() => {
    if (small || !wanted) return undefined;
    runs.ask(choiceOf(input), async () => {
      const began = performance.now();
      const given = latest.current;
      try {
        const output = await of.run(job, given);
        const computed = performance.now() - began;
        return computed + await costOf(() => setLate({ done: { output, table: of.table.peek() }, error: null, choice: choiceOf(given) }));
      } catch (error) {
        if (!isAbort(error)) setLate((l) => ({ ...l, error: messageOf(error) }));
        return performance.now() - began;
      }
    });
    return undefined;
  }, [table, key, small, wanted]);
  if (small) return { done: now, error: null, isOld: false };
  return { done: late.done ?? last.current, error: late.error, isOld: late.done !== null && late.choice !== choiceOf(input) };
}

/** What the user chose of an input: all but the version of a file. */
const choiceOf = (input: unknown): string => JSON.stringify({ ...(input as object | null), version: undefined });

/** One run at a time; what is asked for meanwhile is run once, afterwards. */
class Runs {
  readonly #turns: Turns;
  #wanted: { choice: string; work: () => Promise<number> } | null = null;
  #running = false;
  #stopped = false;
  #choice: string | null = null;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  ask(choice: string, work: () => Promise<number>): void {
    this.#wanted = { choice, work };
    this.#plan();
  }

  stop(): void {
    this.#stopped = true;
    this.#turns.drop(this);
  }

  #plan(): void {
    if (this.#wanted === null || this.#running || this.#stopped) return;
    if (this.#wanted.choice === this.#choice) this.#turns.ask(this, () => this.#run());
    else void this.#run();
  }

  /** The answer is what it cost. */
  async #run(): Promise<number> {
    const next = this.#wanted;
    if (next === null || this.#running || this.#stopped) return 0; // the user was faster
    [this.#wanted, this.#running, this.#choice] = [null, true, next.choice];
    const cost = await next.work();
    this.#running = false;
    this.#plan();
    return cost;
  }
}
