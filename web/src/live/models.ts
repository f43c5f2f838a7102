/* The list of models; one model with its versions, and one of them in detail. */
import { signal } from "@preact/signals";
import { call } from "../api/http";
import type * as Api from "../api/types";
import { Model } from "./model";

/** All pages of a list. */
export async function allOf<T>(page: (query: { page_size: number; cursor?: string }) => Promise<{ items: T[]; next_cursor: string | null }>): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | null = null;
  do {
    const query: { page_size: number; cursor?: string } = { page_size: 200 };
    if (cursor !== null) query.cursor = cursor;
    const next: { items: T[]; next_cursor: string | null } = await page(query);
    all.push(...next.items);
    cursor = next.next_cursor;
  } while (cursor !== null);
  return all;
}

export class ModelsModel extends Model {
  /** By name; null until loaded. */
  readonly models = signal<Api.Model[] | null>(null);

  constructor() {
    super("/v1/events");
  }

  protected reset(): void {
    // Every load fetches the whole list.
  }

  protected event(event: Api.Event): void {
    if (event.type === "model.changed") this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    this.models.value = await allOf((query) => call("GET /v1/models", { query, signal }));
  }
}

export class OneModel extends Model {
  /** Null until loaded. */
  readonly model = signal<Api.Model | null>(null);
  /** Newest first. */
  readonly versions = signal<Api.ModelVersion[]>([]);
  /** The version that is shown whole: a number, or "default". */
  readonly shown = signal<Api.ModelVersion | null>(null);
  readonly #name: string;
  #wanted: string;

  constructor(name: string, version: string) {
    super("/v1/events");
    this.#name = name;
    this.#wanted = version;
  }

  show(version: string): void {
    if (version === this.#wanted) return;
    this.#wanted = version;
    this.refresher.ask();
  }

  /** Take the answer of a change, newer than what is shown. */
  take(model: Api.Model): void {
    this.model.value = model;
    this.refresher.ask();
  }

  protected reset(): void {
    // Every load fetches all of it: a model has few versions, and they never change.
  }

  protected event(event: Api.Event): void {
    if (event.type === "model.changed" && event.model === this.#name) this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    const path = { model: this.#name };
    const wanted = this.#wanted;
    const model = await call("GET /v1/models/{model}", { path, signal });
    const versions = await allOf((query) => call("GET /v1/models/{model}/versions", { path, query, signal }));
    const shown = versions.length === 0 ? null : await call("GET /v1/models/{model}/versions/{version}", { path: { ...path, version: wanted }, signal });
    this.model.value = model;
    this.versions.value = versions;
    if (wanted === this.#wanted) this.shown.value = shown;
  }
}
