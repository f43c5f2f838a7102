/* Trials of one or several sweeps, to be seen side by side: each with its series, the end of its
 * output, and its files. */
import { signal } from "@preact/signals";
import { call, Failure } from "../api/http";
import type * as Api from "../api/types";
import { formatNumbers, parseNumbers } from "../data/numbers";
import { Model } from "./model";
import { allSeries } from "./trial";

/* More do not fit side by side. */
export const MOST_COMPARED = 12;
const EVERY_MS = 1000;

export interface TrialId {
  sweep: string;
  number: number;
}

/** "digits:0,3;other:7": trials in the address, at most MOST_COMPARED of them. */
export function parseTrials(text: string): TrialId[] {
  return text.split(";").flatMap((part) => { const [sweep = "", numbers = ""] = part.split(":", 2); return sweep === "" ? [] : parseNumbers(numbers).slice(0, MOST_COMPARED).map((number) => ({ sweep, number })); }).slice(0, MOST_COMPARED);
}

export function formatTrials(trials: readonly TrialId[]): string {
  const sweeps = [...new Set(trials.map((t) => t.sweep))];
  return sweeps.map((sweep) => `${sweep}:${formatNumbers(trials.filter((t) => t.sweep === sweep).map((t) => t.number)) ?? ""}`).join(";");
}

export const keyOf = (id: TrialId): string => `${id.sweep}/${id.number}`;

export interface Compared {
  id: TrialId;
  sweep: Api.Sweep;
  trial: Api.TrialDetail;
  series: Api.Series["series"];
  log: Api.TrialLog;
  files: readonly Api.File[];
}

export class ComparedModel extends Model {
  /** In the order that was asked for; null until loaded. */
  readonly trials = signal<readonly Compared[] | null>(null);
  /** Those that do not exist. */
  readonly missing = signal<readonly TrialId[]>([]);
  readonly #ids: readonly TrialId[];
  readonly #known = new Map<string, Compared | null>();
  readonly #sweeps = new Map<string, Api.Sweep>();
  #changed: Set<string>;

  constructor(ids: readonly TrialId[]) {
    super("/v1/events", EVERY_MS);
    this.#ids = ids;
    this.#changed = new Set(ids.map(keyOf));
  }

  protected reset(): void {
    this.#sweeps.clear();
    this.#changed = new Set(this.#ids.map(keyOf));
  }

  protected event(event: Api.Event): void {
    if (event.sweep === undefined || event.number === undefined) return;
    const key = keyOf({ sweep: event.sweep, number: event.number });
    if (!this.#ids.some((id) => keyOf(id) === key)) return;
    this.#changed.add(key);
    this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    const changed = this.#changed;
    this.#changed = new Set();
    try {
      await Promise.all(this.#ids.filter((id) => changed.has(keyOf(id))).map(async (id) => this.#known.set(keyOf(id), await this.#one(id, signal))));
    } catch (error) {
      for (const key of changed) this.#changed.add(key);
      throw error;
    }
    this.trials.value = this.#ids.flatMap((id) => this.#known.get(keyOf(id)) ?? []);
    this.missing.value = this.#ids.filter((id) => this.#known.get(keyOf(id)) === null);
  }

  /** Null: there is no such trial. */
  async #one(id: TrialId, signal: AbortSignal): Promise<Compared | null> {
    const path = { sweep: id.sweep, number: id.number };
    try {
      const [trial, series, log, files] = await Promise.all([
        call("GET /v1/sweeps/{sweep}/trials/{number}", { path, signal }), allSeries(path, signal),
        call("GET /v1/sweeps/{sweep}/trials/{number}/log", { path, query: {}, signal }), call("GET /v1/sweeps/{sweep}/trials/{number}/artifacts", { path, signal })]);
      const sweep = this.#sweeps.get(id.sweep) ?? await call("GET /v1/sweeps/{sweep}", { path: { sweep: id.sweep }, signal });
      this.#sweeps.set(id.sweep, sweep);
      return { id, sweep, trial, series, log, files: files.items };
    } catch (error) {
      if (error instanceof Failure && error.status === 404) return null;
      throw error;
    }
  }
}
