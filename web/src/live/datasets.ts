/* The data sets. One never changes: a name that has other content is refused until it is deleted. */
import { signal } from "@preact/signals";
import { call, Failure } from "../api/http";
import type * as Api from "../api/types";
import { LazyResource } from "./lazy_resource";
import { Model } from "./model";
import { allOf } from "./models";

export class DatasetsModel extends Model {
  /** By name; null until loaded. */
  readonly datasets = signal<Api.Dataset[] | null>(null);

  constructor() {
    super("/v1/events");
  }

  protected reset(): void {
    // Every load fetches the whole list.
  }

  protected event(event: Api.Event): void {
    if (event.type === "dataset.changed") this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    this.datasets.value = await allOf((query) => call("GET /v1/datasets", { query, signal }));
  }
}

const MOST_USERS = 200; // sweeps that are listed

/** Who learns from a data set. */
export interface Users {
  sweeps: Api.SweepSummary[];
  versions: Api.ModelVersion[];
  /** There are older sweeps, which are not listed. */
  cut: boolean;
}

async function usersOf(name: string, signal: AbortSignal): Promise<Users> {
  const [sweeps, versions] = await Promise.all([
    call("GET /v1/sweeps", { query: { dataset: name, page_size: MOST_USERS }, signal }),
    allOf((query) => call("GET /v1/datasets/{dataset}/models", { path: { dataset: name }, query, signal })),
  ]);
  return { sweeps: sweeps.items, versions, cut: sweeps.next_cursor !== null };
}

export class OneDataset extends Model {
  readonly dataset = signal<Api.Dataset | null>(null);
  readonly users = signal<Users | null>(null);
  /** Null until it is loaded: the first request of all reads the content. */
  readonly preview: LazyResource<Api.DatasetPreview>;
  readonly #name: string;
  #changed = true;
  #usersChanged = true;

  constructor(name: string) {
    super("/v1/events");
    this.#name = name;
    this.preview = new LazyResource((signal) => call("GET /v1/datasets/{dataset}/preview", { path: { dataset: name }, signal }));
  }

  override close(): void {
    this.preview.stop();
    super.close();
  }

  protected reset(): void {
    this.#usersChanged = this.#changed = true;
  }

  protected event(event: Api.Event): void {
    if (event.type === "dataset.changed" && event.dataset === this.#name) this.#changed = true; // it was deleted, or is another one now
    else if (event.type === "sweep.created" || event.type === "model.changed") this.#usersChanged = true;
    else return;
    this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    if (this.#changed) await this.#loadDataset(signal);
    if (!this.#usersChanged) return;
    this.#usersChanged = false;
    try {
      this.users.value = await usersOf(this.#name, signal);
    } catch (error) {
      this.#usersChanged = true;
      throw error;
    }
  }

  async #loadDataset(signal: AbortSignal): Promise<void> {
    const before = this.dataset.peek();
    this.#changed = false;
    try {
      this.dataset.value = await call("GET /v1/datasets/{dataset}", { path: { dataset: this.#name }, signal });
    } catch (error) {
      this.#changed = true;
      if (error instanceof Failure && error.status === 404) this.dataset.value = null;
      throw error;
    }
    if (before !== null && before.created_at !== this.dataset.value.created_at) this.preview.mark();
  }
}
