/* The list of runners. */
import { signal } from "@preact/signals";
import { call } from "../api/http";
import type * as Api from "../api/types";
import { Model } from "./model";
import { INTERVAL_MS } from "./refresher";

/* A heartbeat causes no event, so "seen" is read again at this interval. */
const EVERY_MS = 5000;
const REST = 9; // times as long as a load took: a list of thousands is asked for less often

export class RunnersModel extends Model {
  /** Live runners first; null until loaded. */
  readonly runners = signal<Api.Runner[] | null>(null);
  readonly #timer: ReturnType<typeof setInterval>;

  constructor() {
    super("/v1/events");
    this.#timer = setInterval(() => this.refresher.ask(), EVERY_MS);
  }

  override close(): void {
    clearInterval(this.#timer);
    super.close();
  }

  protected reset(): void {
    // Every load fetches the whole list.
  }

  protected event(event: Api.Event): void {
    if (event.type === "runner.changed" || event.type === "trial.changed") this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    const all: Api.Runner[] = [];
    const began = performance.now();
    let cursor: string | null = null;
    do {
      const query: { page_size: number; cursor?: string } = { page_size: 200 };
      if (cursor !== null) query.cursor = cursor;
      const page: Api.RunnerList = await call("GET /v1/runners", { query, signal });
      all.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor !== null);
    this.refresher.pace(Math.max(INTERVAL_MS, REST * (performance.now() - began)));
    this.runners.value = all;
  }
}
