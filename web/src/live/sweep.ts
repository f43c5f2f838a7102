/* One sweep with all its trials and its ensemble.
 *
 * All trials are loaded once, in pages by number. Later events name trials that changed: up to
 * ONE_BY_ONE of them are fetched one by one, more of them by the pages that contain them, with the
 * cursors of the first load. A trial with a higher number than the last known one is on the last
 * page or after it. The values that the server computes from all results (importance, front) are
 * out of date when another trial has ended. */
import { signal } from "@preact/signals";
import { call, Failure } from "../api/http";
import type * as Api from "../api/types";
import { LazyResource } from "./lazy_resource";
import { Model, sweepEvents } from "./model";

const PAGE_SIZE = 500;
const ONE_BY_ONE = 12;

/** The beginning of a page: its cursor and the first trial number on it. */
interface Page {
  cursor: string | null;
  first: number;
}

const ENDED: ReadonlySet<Api.SweepState> = new Set(["completed", "failed", "cancelled"]);
export const hasEnded = (state: Api.SweepState) => ENDED.has(state);

/** The Pareto front with the trials of all its pages. */
async function wholeFront(path: { sweep: string }, signal: AbortSignal): Promise<Api.Pareto> {
  const front: Api.Pareto = await call("GET /v1/sweeps/{sweep}/pareto", { path, signal });
  while (front.next_cursor !== null) {
    const next: Api.Pareto = await call("GET /v1/sweeps/{sweep}/pareto", { path, query: { cursor: front.next_cursor }, signal });
    front.items.push(...next.items);
    front.next_cursor = next.next_cursor;
  }
  return front;
}

export class SweepModel extends Model {
  readonly id: string;
  readonly sweep = signal<Api.Sweep | null>(null);
  /** In the order of their numbers. A new array whenever one of them changed. */
  readonly trials = signal<readonly Api.Trial[]>([]);
  readonly trialsLoaded = signal(false);
  readonly ensemble = signal<Api.Ensemble | null>(null);
  readonly pareto: LazyResource<Api.Pareto>;

  /** By objective, for those that were looked at. */
  #importance = new Map<string, LazyResource<Api.Importance>>();
  #byNumber = new Map<number, Api.Trial>();
  #pages: Page[] = [];
  #all = true;
  #sweepChanged = true;
  #ensembleChanged = true;
  #changed = new Set<number>();
  #measured = false;
  /** Measurements since the present load began; they may be newer than its answers. */
  #news = new Map<number, Api.Event>();
  /** Counts the changes of the sweep that did not come from a load. */
  #told = 0;

  constructor(id: string) {
    super(sweepEvents(id));
    this.id = id;
    const path = { sweep: id };
    this.pareto = new LazyResource((signal) => wholeFront(path, signal));
  }

  /** The importance of the parameters for one of the sweep's objectives. */
  importanceOf(metric: string): LazyResource<Api.Importance> {
    const known = this.#importance.get(metric);
    if (known) return known;
    const made = new LazyResource((signal) => call("GET /v1/sweeps/{sweep}/importance", { path: { sweep: this.id }, query: { metric }, signal }), (now) => now.stale);
    this.#importance.set(metric, made);
    return made;
  }

  override close(): void {
    for (const importance of this.#importance.values()) importance.stop();
    this.pareto.stop();
    super.close();
  }

  /** The answer to a change of the sweep. It is newer than any load that began before it. */
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

  /** The event of a measurement contains the new value, so no request is needed. */
  #takeMeasurement(event: Api.Event, number: number): void {
    this.#news.set(number, event);
    const trial = this.#byNumber.get(number);
    if (!trial) this.#changed.add(number);
    else {
      this.#put(trial);
      this.#measured = true;
    }
  }

  /** The answer for a trial, with the measurements that arrived after the request was sent. */
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

  /** Wait for `work`; when it fails, call `note`, which marks the object as out of date again. */
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
    if (told !== this.#told) return; // take() requested another load
    const before = this.sweep.value;
    if (before && !hasEnded(before.state) && hasEnded(now.state)) this.#ensembleChanged = true;
    this.sweep.value = now;
    if (before?.counts.completed === now.counts.completed) return;
    for (const importance of this.#importance.values()) importance.mark();
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
    this.#all = false; // before the load, not after it: the stream may begin meanwhile
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
