/* The list of all sweeps. */
import { signal } from "@preact/signals";
import { call } from "../api/http";
import type * as Api from "../api/types";
import { Model } from "./model";

/* Up to this many changed sweeps are fetched one by one; for more, the whole list is fetched. */
const ONE_BY_ONE = 4;
const PAGE_SIZE = 200;
const INTERVAL_MS = 1000; // of loads: while trials come, each is a request for each sweep, and a frame

export class SweepsModel extends Model {
  /** Newest first; null until loaded. */
  readonly sweeps = signal<Api.SweepSummary[] | null>(null);
  #all = true;
  #changed = new Set<string>();

  constructor() {
    super("/v1/events", INTERVAL_MS);
  }

  protected reset(): void {
    this.#all = true;
  }

  protected event(event: Api.Event): void {
    if (!event.sweep || event.type === "trial.measured" || event.type === "trial.rung") return;
    this.#changed.add(event.sweep);
    this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    const known = new Map((this.sweeps.value ?? []).map((s) => [s.id, s]));
    const changed = [...this.#changed];
    const all = this.#all || changed.length > ONE_BY_ONE || changed.some((id) => !known.has(id));
    // Before the calls, because this load may miss changes that happen during them.
    this.#changed.clear();
    this.#all = false;
    try {
      if (all) this.sweeps.value = await this.#loadAll(signal);
      else {
        for (const sweep of changed) known.set(sweep, await call("GET /v1/sweeps/{sweep}", { path: { sweep }, signal }));
        this.sweeps.value = [...known.values()];
      }
    } catch (error) {
      this.#all ||= all;
      changed.forEach((id) => this.#changed.add(id));
      throw error;
    }
  }

  async #loadAll(signal: AbortSignal): Promise<Api.SweepSummary[]> {
    const all: Api.SweepSummary[] = [];
    let cursor: string | null = null;
    do {
      const query: { page_size: number; cursor?: string } = { page_size: PAGE_SIZE };
      if (cursor !== null) query.cursor = cursor;
      const page: Api.SweepList = await call("GET /v1/sweeps", { query, signal });
      all.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor !== null);
    return all;
  }
}
