/* The table of one sweep: loaded whole once, then extended by what changed, in step with the worker.
 *
 * The caller asks for loads (at most four a second, refresher.ts) when their turn comes (turns.ts), and passes on the
 * measurements of running trials, which events carry. */
import { signal } from "@preact/signals";
import { emptyTable, Store, type Table } from "./columns";
import type { JobInput, JobName, JobOutput } from "./jobs";
import { costOf, Turns } from "./turns";
import { WorkerClient } from "./worker_client";

const MOST_POINTS = 64; // of a curve: more cannot be told apart in one chart of many

interface Measured {
  value: number;
  attempt: number;
}

export class SweepTable {
  readonly table = signal<Table>(emptyTable());
  readonly loaded = signal(false);
  /** What follows from new trials: loads of the table, and jobs. */
  readonly turns = new Turns();
  /** The first load has ended, whether it succeeded or not. */
  readonly tried: Promise<void>;
  #endTry!: () => void;
  readonly #sweep: string;
  readonly #path: string;
  readonly #worker = new WorkerClient();
  readonly #store = new Store();
  /** Measurements since the present load began; they may be newer than its answer. */
  readonly #news = new Map<number, Measured>();
  #version: string | null = null;
  /** Milliseconds of page and worker since takeCost(). */
  #cost = 0;

  constructor(sweep: string) {
    this.#sweep = `/v1/sweeps/${encodeURIComponent(sweep)}`;
    this.#path = `${this.#sweep}/table`;
    this.tried = new Promise((resolve) => { this.#endTry = resolve; });
  }

  /** Load what changed since the last load; the whole table at first. A whole table may be older
   * than the request, so what changed since its version follows at once. */
  async load(signal: AbortSignal): Promise<void> {
    this.#news.clear();
    try {
      if (await this.#loadPart(signal)) await this.#loadPart(signal);
    } finally {
      this.#endTry();
    }
    this.loaded.value = true;
  }

  /** Whether the answer was a whole table. */
  async #loadPart(signal: AbortSignal): Promise<boolean> {
    const { part, ms } = await this.#worker.take(`${this.#path}?layout=planes${this.#version === null ? "" : `&since=${this.#version}`}`, signal);
    const began = performance.now() - ms;
    this.#store.take(part);
    this.#version = part.version;
    for (const [number, news] of this.#news) this.#measure(number, news);
    this.#cost += performance.now() - began;
    if (part.whole || part.number.length > 0) await this.publish();
    if (part.whole) this.#cost = 0; // it comes once
    return part.whole;
  }

  /** What loads and publish() have cost since the last call, in ms. */
  takeCost(): number {
    const cost = this.#cost;
    this.#cost = 0;
    return cost;
  }

  /** Load the points of a metric into the worker, or what changed of them; their version. */
  async loadPoints(metric: string, since: string | null, signal: AbortSignal): Promise<string> {
    const query = new URLSearchParams({ metric, max_points: String(MOST_POINTS), layout: "planes", ...(since === null ? {} : { since }) });
    return this.#worker.takePoints(metric, `${this.#sweep}/points?${query}`, signal);
  }

  /** Load the attempts of all trials into the worker, or what changed of them; their version. */
  async loadAttempts(since: string | null, signal: AbortSignal): Promise<string> {
    return this.#worker.takeAttempts(`${this.#sweep}/attempts?layout=planes${since === null ? "" : `&since=${since}`}`, signal);
  }

  /** A measurement of a running trial, from its event. False: the trial is not known yet. */
  measured(number: number, attempt: number, value: number): boolean {
    this.#news.set(number, { value, attempt });
    return this.#measure(number, { value, attempt });
  }

  /** Show the measurements. */
  async publish(): Promise<void> {
    this.#cost += await costOf(() => { this.table.value = this.#store.table(this.#version ?? "0"); });
  }

  /** Compute in the worker. */
  run<K extends JobName>(job: K, input: JobInput<K>): Promise<JobOutput<K>> {
    return this.#worker.run(job, input);
  }

  close(): void {
    this.#endTry();
    this.turns.stop();
    this.#worker.close();
  }

  #measure(number: number, { value, attempt }: Measured): boolean {
    if (!this.#store.has(number)) return false;
    if (this.#store.runs(number, attempt)) {
      this.#store.set(number, "value", value);
      this.#worker.set(number, "value", value);
    }
    return true;
  }
}
