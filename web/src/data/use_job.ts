/* The result of a job for a component. Of few trials it is computed at once, so that it changes in
 * the same frame as everything else; of more the worker computes it, and the last result is shown
 * until then. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { messageOf, isAbort } from "../api/http";
import type { Table } from "./columns";
import { IN_WORKER, JOBS, type JobInput, type JobName, type JobOutput } from "./jobs";
import type { SweepTable } from "./sweep_table";

const AT_ONCE = 3000;

export interface Done<K extends JobName> {
  output: JobOutput<K>;
  /** The table that it was computed from, or a later one. */
  table: Table;
}

export function useJob<K extends JobName>(of: SweepTable, job: K, input: JobInput<K>): { done: Done<K> | null; error: string | null } {
  const table = of.table.value;
  const key = JSON.stringify(input);
  const small = table.n <= AT_ONCE && !IN_WORKER.has(job);
  const now = useMemo(() => (small ? { output: (JOBS[job] as (t: Table, i: JobInput<K>) => JobOutput<K>)(table, input), table } : null), [table, key, small]);
  const [late, setLate] = useState<{ done: Done<K> | null; error: string | null }>({ done: null, error: null });
  const running = useRef(false);
  const wanted = useRef(0);
  useEffect(() => {
    if (small) return;
    wanted.current++;
    const next = async () => { // one at a time: what changes meanwhile is computed once, afterwards
      if (running.current) return;
      running.current = true;
      const which = wanted.current;
      try {
        const output = await of.run(job, latest.current);
        setLate({ done: { output, table: of.table.peek() }, error: null });
      } catch (error) {
        if (!isAbort(error)) setLate((l) => ({ ...l, error: messageOf(error) }));
      }
      running.current = false;
      if (which !== wanted.current) void next();
    };
    void next();
  }, [table, key, small]);
  const latest = useRef(input);
  latest.current = input;
  return small ? { done: now, error: null } : late;
}
