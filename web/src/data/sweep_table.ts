/* The table of one sweep: loaded whole once, then extended by what changed, in step with the worker.
 *
 * The caller asks for loads (at most four a second, refresher.ts) and passes on the measurements of
 * running trials, which events carry. */
import { signal } from "@preact/signals";
import { send } from "../api/http";
import { emptyTable, search, Store, type Table } from "./columns";
import type { JobInput, JobName, JobOutput } from "./jobs";
import { WorkerClient } from "./worker_client";

interface Measured {
  value: number;
  attempt: number;
}

export class SweepTable {
  readonly table = signal<Table>(emptyTable());
  readonly loaded = signal(false);
  /** Columns that the server does not send unless they are asked for. */
  readonly #extra = new Set<string>();
  readonly #path: string;
  readonly #worker = new WorkerClient();
  readonly #store = new Store();
  /** Measurements since the present load began; they may be newer than its answer. */
  readonly #news = new Map<number, Measured>();
  #version: string | null = null;

  constructor(sweep: string) {
    this.#path = `/v1/sweeps/${encodeURIComponent(sweep)}/table`;
  }

  /** Load what changed since the last load; the whole table at first. */
  async load(signal: AbortSignal): Promise<void> {
    this.#news.clear();
    const query = new URLSearchParams();
    if (this.#version !== null) query.set("since", this.#version);
    if (this.#extra.size > 0) query.set("columns", ["default", ...this.#extra].join(","));
    const text = query.toString();
    const response = await send(text === "" ? this.#path : `${this.#path}?${text}`, { signal });
    const part = await this.#worker.take(await response.arrayBuffer());
    if (signal.aborted) return;
    const changed = part.whole || part.number.length > 0;
    this.#store.take(part);
    this.#version = part.version;
    for (const [number, news] of this.#news) this.#measure(number, news);
    this.loaded.value = true;
    if (changed || this.table.value.n === 0) this.#publish();
  }

  /** The next load fetches the whole table. */
  reset(): void {
    this.#version = null;
  }

  /** A measurement of a running trial, from its event. False: the trial is not known yet. */
  measured(number: number, attempt: number, value: number): boolean {
    this.#news.set(number, { value, attempt });
    return this.#measure(number, { value, attempt });
  }

  /** Make a new Table after measured(). */
  publish(): void {
    this.#publish();
  }

  /** Compute in the worker. */
  run<K extends JobName>(job: K, input: JobInput<K>): Promise<JobOutput<K>> {
    return this.#worker.run(job, input);
  }

  close(): void {
    this.#worker.close();
  }

  #measure(number: number, { value, attempt }: Measured): boolean {
    const { table } = this;
    const row = search(table.value.number, table.value.n, number);
    if (row < 0) return false;
    const { state } = table.value;
    const its = table.value.column("attempt");
    const fits = state.words[state.values[row]!] === "running" && (its?.kind !== "number" || its.values[row] === attempt);
    if (fits) {
      this.#store.set(number, "value", value);
      this.#worker.set(number, "value", value);
    }
    return true;
  }

  #publish(): void {
    this.table.value = this.#store.table(this.#version ?? "0");
  }
}
