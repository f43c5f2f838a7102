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

const MOST_PAGES = 5; // of sweeps that are looked at
const PAGE = 100;

/** The sweeps that learn from a data set. */
export interface Users {
  sweeps: Api.SweepSummary[];
  /** There are older sweeps, which were not looked at. */
  cut: boolean;
}

function datasetOf(document: Api.SweepDocument | undefined): unknown {
  const trial = document?.trial;
  return trial && "train" in trial ? trial.train.dataset : undefined;
}

async function usersOf(name: string, signal: AbortSignal): Promise<Users> {
  const users: Users = { sweeps: [], cut: false };
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const list: Api.SweepList = await call("GET /v1/sweeps", { query: { include: "document", page_size: PAGE, ...(cursor === null ? {} : { cursor }) }, signal });
    users.sweeps.push(...list.items.filter((s) => datasetOf(s.document) === name).map((s) => { const { document: _, ...rest } = s; return rest; }));
    cursor = list.next_cursor;
    users.cut = cursor !== null;
    if (cursor === null) break;
  }
  return users;
}

export class OneDataset extends Model {
  readonly dataset = signal<Api.Dataset | null>(null);
  readonly users = signal<Users | null>(null);
  readonly #name: string;
  #usersChanged = true;

  constructor(name: string) {
    super("/v1/events");
    this.#name = name;
  }

  protected reset(): void {
    this.#usersChanged = true; // the data set itself never changes
  }

  protected event(event: Api.Event): void {
    if (event.type !== "sweep.created") return;
    this.#usersChanged = true;
    this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    this.dataset.value ??= await call("GET /v1/datasets/{dataset}", { path: { dataset: this.#name }, signal });
    if (!this.#usersChanged) return;
    this.#usersChanged = false;
    try {
      this.users.value = await usersOf(this.#name, signal);
    } catch (error) {
      this.#usersChanged = true;
      throw error;
    }
  }
}
