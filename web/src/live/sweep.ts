/* One sweep with all its trials and its ensemble.
 *
 * Trials are loaded once, in pages by number. Afterwards an event names a trial: up to ONE_BY_ONE of them
 * are fetched singly, more as the pages that hold them, found by the cursors of the first load. A trial
 * past the last known number lies on the last page or beyond it. What the server computes from all results
 * (importance, front) is old when another trial has ended. */
import { signal } from "@preact/signals";
import { call, Failure } from "../api/http";
import type * as Api from "../api/types";
import { LazyResource } from "./lazy_resource";
import { Model, sweepEvents } from "./model";

const PAGE_SIZE = 500;
const ONE_BY_ONE = 12;

/** Where a page begins: its cursor, and the first trial number on it. */
interface Page {
  cursor: string | null;
  first: number;
}

const ENDED: ReadonlySet<Api.SweepState> = new Set(["completed", "failed", "cancelled"]);
export const hasEnded = (state: Api.SweepState) => ENDED.has(state);

export class SweepModel extends Model {
  readonly id: string;
  readonly sweep = signal<Api.Sweep | null>(null);
  /** In the order of their numbers. A new array whenever one of them changed. */
  readonly trials = signal<readonly Api.Trial[]>([]);
  readonly trialsLoaded = signal(false);
  readonly ensemble = signal<Api.Ensemble | null>(null);
  readonly importance: LazyResource<Api.Importance>;
  readonly pareto: LazyResource<Api.Pareto>;

  #byNumber = new Map<number, Api.Trial>();
  #pages: Page[] = [];
  #all = true;
  #sweepChanged = true;
  #ensembleChanged = true;
  #changed = new Set<number>();
  #measured = false;
  /** Measurements since the present load began: its answers may be older. */
  #news = new Map<number, Api.Event>();
  /** How often the sweep was told by something else than a load. */
  #told = 0;

  constructor(id: string) {
    super(sweepEvents(id));
    this.id = id;
    const path = { sweep: id };
    this.importance = new LazyResource((signal) => call("GET /v1/sweeps/{sweep}/importance", { path, signal }), (now) => now.stale);
    this.pareto = new LazyResource((signal) => call("GET /v1/sweeps/{sweep}/pareto", { path, signal }));
  }

  override close(): void {
    this.importance.stop();
    this.pareto.stop();
    super.close();
  }

  /** The answer to a change of the sweep; a load that began before it knows less. */
  take(sweep: Api.Sweep): void {
    this.#told++;
    this.sweep.value = sweep;
    this.#sweepChanged = true;
    this.refresher.ask();
  }

  protected reset(): void {
    this.#all = this.#sweepChanged = this.#ensembleChanged = true;
  }

  protected event(event: Api.Event): void {
    if (event.type === "trial.measured" && event.number !== undefined) this.#takeMeasurement(event, event.number);
    else if (event.type === "trial.changed" && event.number !== undefined) {
      this.#changed.add(event.number);
      this.#sweepChanged = true;
    } else if (event.type === "ensemble.ready") this.#ensembleChanged = this.#sweepChanged = true;
    else this.#sweepChanged = true;
    this.refresher.ask();
  }

  /** A measurement of the sweep's metric is the whole news: there is nothing to fetch. */
  #takeMeasurement(event: Api.Event, number: number): void {
    this.#news.set(number, event);
    const trial = this.#byNumber.get(number);
    if (!trial) this.#changed.add(number);
    else {
      this.#put(trial);
      this.#measured = true;
    }
  }

  /** A trial as it was answered, with what its run has measured since it was asked for. */
  #put(trial: Api.Trial): void {
    const news = this.#news.get(trial.number);
    const fits = news?.value !== undefined && trial.state === "running" && news.attempt === trial.attempt;
    this.#byNumber.set(trial.number, fits ? { ...trial, value: news.value } : trial);
  }

  protected async load(signal: AbortSignal): Promise<void> {
    this.#news.clear();
    if (this.#sweepChanged) {
      this.#sweepChanged = false;
      await this.#orAgain(this.#loadSweep(signal), () => { this.#sweepChanged = true; });
    }
    if (this.#all) await this.#loadAll(signal);
    else await this.#loadChanged(signal);
    if (this.#ensembleChanged && this.sweep.value && hasEnded(this.sweep.value.state)) {
      this.#ensembleChanged = false;
      await this.#orAgain(this.#loadEnsemble(signal), () => { this.#ensembleChanged = true; });
    }
  }

  /** Do it; when it fails, note that it is still to be done. */
  async #orAgain(work: Promise<void>, note: () => void): Promise<void> {
    try {
      await work;
    } catch (error) {
      note();
      throw error;
    }
  }

  async #loadSweep(signal: AbortSignal): Promise<void> {
    const told = this.#told;
    const now = await call("GET /v1/sweeps/{sweep}", { path: { sweep: this.id }, signal });
    if (told !== this.#told) return; // take() asked for another
    const before = this.sweep.value;
    if (before && !hasEnded(before.state) && hasEnded(now.state)) this.#ensembleChanged = true;
    this.sweep.value = now;
    if (before?.counts.completed === now.counts.completed) return;
    this.importance.mark();
    this.pareto.mark();
  }

  async #loadEnsemble(signal: AbortSignal): Promise<void> {
    try {
      this.ensemble.value = await call("GET /v1/sweeps/{sweep}/ensemble", { path: { sweep: this.id }, signal });
    } catch (error) {
      if (!(error instanceof Failure && error.status === 404)) throw error;
      this.ensemble.value = null;
    }
  }

  async #loadAll(signal: AbortSignal): Promise<void> {
    const changed = this.#changed;
    this.#changed = new Set();
    this.#all = false; // now, not when it is done: the stream may begin meanwhile
    const fresh = new Map<number, Api.Trial>();
    const keep = this.#byNumber;
    this.#byNumber = fresh;
    this.#pages = [];
    try {
      await this.#loadPages(0, signal, () => { if (fresh.size >= keep.size) this.#publish(); });
    } catch (error) {
      this.#all = true;
      if (fresh.size < keep.size) this.#byNumber = keep;
      changed.forEach((n) => this.#changed.add(n));
      throw error;
    }
    this.trialsLoaded.value = true;
    this.#publish();
  }

  /** Pages from `from` to the end of the list. */
  async #loadPages(from: number, signal: AbortSignal, loaded: () => void): Promise<void> {
    for (let at = from; ; at++) {
      const next = await this.#loadPage(at, signal);
      loaded();
      if (next === null) return;
      this.#pages[at + 1] = { cursor: next, first: this.#pages[at + 1]?.first ?? Infinity };
    }
  }

  async #loadPage(at: number, signal: AbortSignal): Promise<string | null> {
    const cursor = this.#pages[at]?.cursor ?? null;
    const query = cursor === null ? { page_size: PAGE_SIZE } : { page_size: PAGE_SIZE, cursor };
    const page = await call("GET /v1/sweeps/{sweep}/trials", { path: { sweep: this.id }, query, signal });
    this.#pages[at] = { cursor, first: page.items[0]?.number ?? Infinity };
    for (const trial of page.items) this.#put(trial);
    return page.next_cursor;
  }

  async #loadChanged(signal: AbortSignal): Promise<void> {
    const numbers = [...this.#changed];
    this.#changed.clear();
    if (numbers.length === 0 && !this.#measured) return;
    try {
      if (numbers.length <= ONE_BY_ONE) await Promise.all(numbers.map((n) => this.#loadOne(n, signal)));
      else await this.#loadPagesOf(numbers, signal);
    } catch (error) {
      numbers.forEach((n) => this.#changed.add(n));
      throw error;
    }
    this.#publish();
  }

  async #loadOne(number: number, signal: AbortSignal): Promise<void> {
    this.#put(await call("GET /v1/sweeps/{sweep}/trials/{number}", { path: { sweep: this.id, number }, signal }));
  }

  async #loadPagesOf(numbers: number[], signal: AbortSignal): Promise<void> {
    const last = this.#pages.length - 1;
    const hit = new Set(numbers.map((n) => Math.max(0, this.#pages.findLastIndex((p) => p.first <= n))));
    for (const at of hit) if (at < last) await this.#loadPage(at, signal);
    if (hit.has(last)) await this.#loadPages(last, signal, () => undefined);
  }

  #publish(): void {
    this.#measured = false;
    this.trials.value = [...this.#byNumber.values()].sort((a, b) => a.number - b.number);
  }
}
