/* Several sweeps, to be compared: each with its best so far and the distribution of its values, which
 * a worker computes from the table of its trials. */
import { signal } from "@preact/signals";
import { call, Failure } from "../api/http";
import type * as Api from "../api/types";
import type { Summary } from "../data/summary";
import { WorkerClient } from "../data/worker_client";
import { Model } from "./model";

export const MOST_SWEEPS = 24;
const EVERY_MS = 3000; // whole tables are loaded

export interface ComparedSweep {
  sweep: Api.Sweep;
  summary: Summary;
}

/** Sweeps whose documents are equal but for these are runs of one thing. */
export function groupKey(document: Api.SweepDocument): string {
  const plain = (value: unknown): unknown => (Array.isArray(value) ? value.map(plain) : value !== null && typeof value === "object" ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => [k, plain(v)])) : value);
  const { name: _name, description: _description, tags: _tags, search, ...rest } = document as Api.SweepDocument & Record<string, unknown>;
  const { seed: _seed, ...how } = (search ?? {}) as Record<string, unknown>;
  return JSON.stringify(plain({ ...rest, search: how }));
}

export class ComparedSweepsModel extends Model {
  /** In the order that was asked for; null until loaded. */
  readonly sweeps = signal<readonly ComparedSweep[] | null>(null);
  readonly missing = signal<readonly string[]>([]);
  readonly #ids: readonly string[];
  readonly #metric: string | null;
  readonly #worker = new WorkerClient();
  readonly #known = new Map<string, ComparedSweep | null>();
  #changed: Set<string>;

  /** `metric`: of an objective; null: the first one of each sweep. */
  constructor(ids: readonly string[], metric: string | null) {
    super("/v1/events", EVERY_MS);
    this.#ids = ids;
    this.#metric = metric;
    this.#changed = new Set(ids);
  }

  override close(): void {
    this.#worker.close();
    super.close();
  }

  protected reset(): void {
    this.#changed = new Set(this.#ids);
  }

  protected event(event: Api.Event): void {
    if (event.sweep === undefined || !this.#ids.includes(event.sweep) || event.type === "trial.measured") return;
    this.#changed.add(event.sweep);
    this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    const changed = this.#changed;
    this.#changed = new Set();
    try {
      for (const id of this.#ids) if (changed.has(id)) this.#known.set(id, await this.#one(id, signal)); // one by one: a table may be large
    } catch (error) {
      for (const id of changed) this.#changed.add(id);
      throw error;
    }
    this.sweeps.value = this.#ids.flatMap((id) => this.#known.get(id) ?? []);
    this.missing.value = this.#ids.filter((id) => this.#known.get(id) === null);
  }

  async #one(id: string, signal: AbortSignal): Promise<ComparedSweep | null> {
    try {
      const sweep = await call("GET /v1/sweeps/{sweep}", { path: { sweep: id }, signal });
      const goal = sweep.metrics.find((m) => m.name === this.#metric)?.goal ?? sweep.metric.goal;
      const column = this.#metric === null || this.#metric === sweep.metric.name ? "value" : `metric:${this.#metric}`;
      // A sweep without this metric has no such column: its answer would be 400.
      const has = column === "value" ? this.#metric === null || sweep.metric.name === this.#metric : sweep.metrics.some((m) => m.name === this.#metric);
      const columns = ["state", "infeasible", "started_at", "ended_at", "step", ...(has ? [column] : [])].join(",");
      const url = `/v1/sweeps/${encodeURIComponent(id)}/table?${new URLSearchParams({ columns })}`;
      return { sweep, summary: await this.#worker.summarise(url, column, goal, signal) };
    } catch (error) {
      if (error instanceof Failure && error.status === 404) return null;
      throw error;
    }
  }
}
