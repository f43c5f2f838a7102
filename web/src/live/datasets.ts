/* The data sets. They never change: a name that has other content is refused. */
import { signal } from "@preact/signals";
import { call } from "../api/http";
import type * as Api from "../api/types";
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
    if (event.type === "sweep.created") this.refresher.ask(); // its data set may be new
  }

  protected async load(signal: AbortSignal): Promise<void> {
    this.datasets.value = await allOf((query) => call("GET /v1/datasets", { query, signal }));
  }
}

export class OneDataset extends Model {
  readonly dataset = signal<Api.Dataset | null>(null);
  readonly #name: string;

  constructor(name: string) {
    super("/v1/events");
    this.#name = name;
  }

  protected reset(): void {
    // A data set never changes.
  }

  protected event(): void {
    // No event is about a data set.
  }

  protected async load(signal: AbortSignal): Promise<void> {
    this.dataset.value = await call("GET /v1/datasets/{dataset}", { path: { dataset: this.#name }, signal });
  }
}
