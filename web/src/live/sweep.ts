/* One sweep with the table of its trials and its ensemble.
 *
 * The table is loaded once; when events name trials, what changed of it is loaded, after the sweep itself and when its
 * turn comes (data/turns.ts). The values that the server computes from all results (importance, front) are out of date
 * when another trial has ended. */
import { batch, signal } from "@preact/signals";
import { call, Failure } from "../api/http";
import type * as Api from "../api/types";
import { SweepTable } from "../data/sweep_table";
import { costOf } from "../data/turns";
import { toNumber } from "../format";
import { LazyResource } from "./lazy_resource";
import { Model, sweepEvents } from "./model";
import { bringTick } from "./page_clock";
import { INTERVAL_MS, Refresher } from "./refresher";

const HEAD_REST = 64; // times as long as showing the sweep's own figures took …
const HEAD_LEAST_MS = 1000; // … and so long at least: nobody reads figures faster, and each time is a frame with its layout and painting …
const HEAD_MOST_MS = 2000; // … but no longer than this
const MANY = 10_000; // trials: what the server computes from all of them waits for their table
const MAX_AGE_S = 30; // of what it computed: the server computes it for all viewers, and less often where it takes longer

const ENDED: ReadonlySet<Api.SweepState> = new Set(["completed", "failed", "cancelled"]);
export const hasEnded = (state: Api.SweepState) => ENDED.has(state);
/** Trials of it may run. */
const isUnderWay = (state: Api.SweepState) => state === "running" || state === "paused";

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

/** What the panels below the figures of a sweep show of it, as text: all but what every trial changes. */
function steadyOf({ counts, planned_trials, known_trials, regret, early_stopping, best, ...rest }: Api.Sweep): string {
  return JSON.stringify({ ...rest, best: best?.number, some: [counts.total > 0, counts.completed > 0, counts.failed > 0] });
}

export class SweepModel extends Model {
  readonly id: string;
  readonly sweep = signal<Api.Sweep | null>(null);
  /** The same for views that show no figure that every trial changes: it stays the same object while only those
   * differ. */
  readonly steady = signal<Api.Sweep | null>(null);
  /** The same object while nothing of it differs. */
  readonly best = signal<Api.Sweep["best"]>(null);
  /** Loads of the table. */
  readonly following: Refresher;
  readonly trials: SweepTable;
  readonly ensemble = signal<Api.Ensemble | null>(null);
  readonly pareto: LazyResource<Api.Pareto>;
  /** What the sweep could still gain, as its trials completed. */
  readonly regret: LazyResource<Api.RegretCheck[]>;
  /** The attempts of all trials, which the worker holds; the value is their version. */
  readonly attempts: LazyResource<string>;

  /** The versions of the points of each metric that was looked at. */
  #points = new Map<string, LazyResource<string>>();
  /** By objective and parameters, for those that were looked at. */
  #surfaces = new Map<string, LazyResource<Api.Surfaces>>();
  /** By objective, for those that were looked at. */
  #importance = new Map<string, LazyResource<Api.Importance>>();
  #sweepChanged = true;
  #ensembleChanged = true;
  #trialsChanged = true;
  #measured = false;
  /** Counts the changes of the sweep that did not come from a load. */
  #told = 0;

  constructor(id: string) {
    super(sweepEvents(id));
    this.id = id;
    const path = { sweep: id };
    this.trials = new SweepTable(id);
    const { trials } = this;
    this.following = new Refresher((signal) => this.#loadTrials(signal), INTERVAL_MS, (run) => trials.turns.ask(trials, async () => {
      await run();
      return trials.takeCost();
    }));
    this.following.ask(); // all trials take longest, so nothing goes before them; what changes meanwhile is loaded when the stream begins
    this.attempts = this.#afterTable((signal) => this.trials.loadAttempts(this.attempts.value.peek(), signal));
    this.pareto = this.#afterTable((signal) => wholeFront(path, signal));
    this.regret = new LazyResource(async (signal) => (await call("GET /v1/sweeps/{sweep}/regret/checks", { path, signal })).items);
  }

  /** A value that the server computes from all trials: of many it would keep the table waiting. */
  #afterTable<T>(load: (signal: AbortSignal) => Promise<T>, isStale?: (value: T) => boolean): LazyResource<T> {
    return new LazyResource(async (signal) => {
      if ((this.sweep.peek()?.counts.total ?? 0) > MANY) await this.trials.tried;
      return load(signal);
    }, isStale);
  }

  /** The importance of the parameters for one of the sweep's objectives. */
  importanceOf(metric: string): LazyResource<Api.Importance> {
    const known = this.#importance.get(metric);
    if (known) return known;
    const made = this.#afterTable((signal) => call("GET /v1/sweeps/{sweep}/importance", { path: { sweep: this.id }, query: { metric, max_age: MAX_AGE_S }, signal }), (now) => now.stale);
    this.#importance.set(metric, made);
    return made;
  }

  /** What a model predicts of an objective: over two parameters, or (without them) along each. */
  surfacesOf(metric: string, x: string | null = null, y: string | null = null): LazyResource<Api.Surfaces> {
    const key = JSON.stringify([metric, x, y]);
    const known = this.#surfaces.get(key);
    if (known) return known;
    const query = { metric, max_age: MAX_AGE_S, ...(x === null ? {} : { x }), ...(y === null ? {} : { y }) };
    const made = this.#afterTable((signal) => call("GET /v1/sweeps/{sweep}/surface", { path: { sweep: this.id }, query, signal }), (now) => now.stale);
    this.#surfaces.set(key, made);
    return made;
  }

  /** The points of a metric of all trials, which the worker holds; the value is their version. */
  pointsOf(metric: string): LazyResource<string> {
    const known = this.#points.get(metric);
    if (known) return known;
    const made: LazyResource<string> = this.#afterTable((signal) => this.trials.loadPoints(metric, made.value.peek(), signal));
    this.#points.set(metric, made);
    return made;
  }

  override close(): void {
    for (const points of this.#points.values()) points.stop();
    for (const importance of this.#importance.values()) importance.stop();
    for (const surface of this.#surfaces.values()) surface.stop();
    this.pareto.stop();
    this.regret.stop();
    this.attempts.stop();
    this.following.stop();
    this.trials.close();
    super.close();
  }

  /** The answer to a change of the sweep. It is newer than any load that began before it. */
  take(sweep: Api.Sweep): void {
    this.#told++;
    this.#show(sweep);
    this.#sweepChanged = this.#trialsChanged = true;
    this.refresher.ask();
  }

  protected reset(): void {
    for (const points of this.#points.values()) points.mark();
    this.attempts.mark();
    this.#trialsChanged = this.#sweepChanged = this.#ensembleChanged = true;
  }

  protected event(event: Api.Event): void {
    if (event.type === "trial.measured" && event.number !== undefined) {
      // The event of a measurement contains the new value, so no request is needed.
      const value = toNumber(event.value);
      const known = value === null || this.trials.measured(event.number, event.attempt ?? 0, value);
      if (known) this.#measured = true;
      else this.#trialsChanged = true;
    } else if (event.type === "trial.changed" && event.number !== undefined) this.#trialsChanged = this.#sweepChanged = true;
    else if (event.type === "ensemble.ready") this.#ensembleChanged = this.#sweepChanged = true;
    else this.#sweepChanged = true;
    if (event.type.startsWith("trial.")) for (const points of this.#points.values()) points.mark();
    if (event.type === "trial.changed" || event.type === "gang.changed") this.attempts.mark();
    this.refresher.ask();
  }

  #show(sweep: Api.Sweep): void {
    const before = this.steady.peek();
    if (before && isUnderWay(before.state) && !isUnderWay(sweep.state)) this.trials.turns.hurry(); // else its last trials would seem to run for a while
    batch(() => {
      this.sweep.value = sweep;
      if (JSON.stringify(this.best.peek()) !== JSON.stringify(sweep.best)) this.best.value = sweep.best;
      if (before === null || steadyOf(before) !== steadyOf(sweep)) this.steady.value = sweep;
    });
  }

  protected async load(signal: AbortSignal): Promise<void> {
    if (this.#sweepChanged) {
      this.#sweepChanged = false;
      await this.#orAgain(this.#loadSweep(signal), () => { this.#sweepChanged = true; });
    }
    if (this.#trialsChanged || this.#measured) this.following.ask();
    if (this.#ensembleChanged && this.sweep.value && hasEnded(this.sweep.value.state)) {
      this.#ensembleChanged = false;
      await this.#orAgain(this.#loadEnsemble(signal), () => { this.#ensembleChanged = true; });
    }
  }

  async #loadTrials(signal: AbortSignal): Promise<void> {
    const changed = this.#trialsChanged;
    this.#trialsChanged = this.#measured = false;
    if (changed) await this.#orAgain(this.trials.load(signal), () => { this.#trialsChanged = true; });
    else await this.trials.publish();
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
    const before = this.sweep.peek();
    let isNews = false;
    const cost = await costOf(() => {
      isNews = told === this.#told; // else take() requested another load
      if (!isNews) return;
      bringTick();
      this.#show(now);
    });
    if (!isNews) return;
    if (before) this.refresher.pace(Math.min(HEAD_MOST_MS, Math.max(HEAD_LEAST_MS, HEAD_REST * cost))); // else all of the page was made
    if (before && !hasEnded(before.state) && hasEnded(now.state)) this.#ensembleChanged = true;
    if (before?.regret?.completed !== now.regret?.completed) this.regret.mark();
    if (before?.counts.completed === now.counts.completed) return;
    for (const importance of this.#importance.values()) importance.mark();
    for (const surface of this.#surfaces.values()) surface.mark();
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
}
