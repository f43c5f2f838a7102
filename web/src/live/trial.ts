/* One trial: its state and attempts, its series, the tail of its log, its files. */
import { signal } from "@preact/signals";
import { call } from "../api/http";
import type * as Api from "../api/types";
import { Model, sweepEvents } from "./model";

/* Output causes no event, so the log of a running trial is read again at this interval. */
const LOG_EVERY_MS = 2000;
/* Measurements may arrive a hundred times a second; the curves are read less often. */
const SERIES_EVERY_MS = 500;
/* A runner sends what a trial uses at most every ten seconds, without an event. */
const USAGE_EVERY_MS = 10_000;

const OPEN: ReadonlySet<Api.TrialState> = new Set(["queued", "running", "paused"]);
export const isOpen = (state: Api.TrialState) => OPEN.has(state);

export class TrialModel extends Model {
  readonly sweepId: string;
  readonly number: number;
  readonly sweep = signal<Api.Sweep | null>(null);
  readonly trial = signal<Api.TrialDetail | null>(null);
  readonly series = signal<Api.Series["series"] | null>(null);
  readonly log = signal<Api.TrialLog | null>(null);
  /** What the latest attempt used of its machine, or each of its ranks. */
  readonly usage = signal<Api.AttemptUsage[]>([]);
  readonly files = signal<Api.File[] | null>(null);
  /** All that attempts printed which printed more than their log has. */
  readonly outputs = signal<Api.File[]>([]);
  /** The ranks of the latest attempt; null: it has none. */
  readonly gang = signal<Api.Gang | null>(null);
  /** The attempt whose output is shown; null: the latest attempt that has output. */
  readonly logAttempt = signal<number | null>(null);

  #trialChanged = true;
  #filesChanged = true;
  #seriesChanged = true;
  #seriesAt = -Infinity;
  #usageAt = -Infinity;
  #gangOf = 0; // the attempt whose gang was read
  readonly #logTimer: ReturnType<typeof setInterval>;

  constructor(sweep: string, number: number) {
    super(sweepEvents(sweep));
    this.sweepId = sweep;
    this.number = number;
    this.#logTimer = setInterval(() => {
      if (this.trial.value && isOpen(this.trial.value.state)) this.refresher.ask();
    }, LOG_EVERY_MS);
  }

  override close(): void {
    clearInterval(this.#logTimer);
    super.close();
  }

  /** The user has changed the trial. */
  readAgain(): void {
    this.#trialChanged = true;
    this.refresher.ask();
  }

  showLogOf(attempt: number | null): void {
    this.logAttempt.value = attempt;
    this.refresher.ask();
  }

  protected reset(): void {
    this.#trialChanged = this.#filesChanged = this.#seriesChanged = true;
    this.#seriesAt = this.#usageAt = -Infinity;
  }

  protected event(event: Api.Event): void {
    if (event.number !== this.number) return;
    this.#seriesChanged = true;
    if (event.type === "trial.changed") this.reset();
    this.refresher.ask();
  }

  protected async load(signal: AbortSignal): Promise<void> {
    const path = { sweep: this.sweepId, number: this.number };
    this.sweep.value ??= await call("GET /v1/sweeps/{sweep}", { path: { sweep: this.sweepId }, signal });
    // Each mark is cleared before its call, because the call may miss later changes. An open trial
    // also changes without an event.
    if (this.#trialChanged || !this.trial.value || isOpen(this.trial.value.state)) {
      this.#filesChanged = true;
      this.#trialChanged = false;
      this.trial.value = await this.#orAgain(call("GET /v1/sweeps/{sweep}/trials/{number}", { path, signal }), () => { this.#trialChanged = true; });
    }
    if (this.#seriesChanged) await this.#loadSeries(path, signal);
    await this.#loadGang(signal);
    await this.#loadUsage(path, signal);
    const attempt = this.logAttempt.value;
    this.log.value = await call("GET /v1/sweeps/{sweep}/trials/{number}/log", { path, query: attempt === null ? {} : { attempt }, signal });
    if (!this.#filesChanged) return;
    this.#filesChanged = false;
    const files = (kind: "artifact" | "log") => this.#orAgain(call("GET /v1/sweeps/{sweep}/trials/{number}/artifacts", { path, query: { kind }, signal }), () => { this.#filesChanged = true; });
    this.files.value = (await files("artifact")).items;
    if (this.log.value.truncated || this.gang.value !== null || this.trial.value.attempts.length > 1) this.outputs.value = (await files("log")).items;
  }

  async #loadUsage(path: { sweep: string; number: number }, signal: AbortSignal): Promise<void> {
    if (performance.now() - this.#usageAt < USAGE_EVERY_MS) return;
    this.#usageAt = performance.now();
    const answer = await this.#orAgain(call("GET /v1/sweeps/{sweep}/trials/{number}/usage", { path, signal }), () => { this.#usageAt = -Infinity; });
    this.usage.value = answer.items;
  }

  /** Ranks join, are lost and make progress without an event, so they are read as often as the
   * trial. */
  async #loadGang(signal: AbortSignal): Promise<void> {
    const last = this.trial.value?.attempts.at(-1);
    if (!last?.gang) {
      this.gang.value = null;
      return;
    }
    const path = { sweep: this.sweepId, number: this.number, attempt: last.attempt };
    if (this.gang.value === null || this.#gangOf !== last.attempt || isOpen(this.trial.value!.state) || this.gang.value.state !== "over") {
      this.gang.value = await call("GET /v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/gang", { path, signal });
      this.#gangOf = last.attempt;
    }
  }

  /** The result of `work`; when it fails, call `note`, which marks the object as out of date
   * again. */
  async #orAgain<T>(work: Promise<T>, note: () => void): Promise<T> {
    try {
      return await work;
    } catch (error) {
      note();
      throw error;
    }
  }

  async #loadSeries(path: { sweep: string; number: number }, signal: AbortSignal): Promise<void> {
    const wait = this.#seriesAt + SERIES_EVERY_MS - performance.now();
    if (wait > 0) {
      setTimeout(() => this.refresher.ask(), wait);
      return;
    }
    this.#seriesChanged = false;
    this.#seriesAt = performance.now();
    this.series.value = await this.#orAgain(allSeries(path, signal), () => {
      this.#seriesChanged = true;
      this.#seriesAt = -Infinity;
    });
  }
}

/** All pages of the measurements; a metric may continue on the next page. */
export async function allSeries(path: { sweep: string; number: number }, signal: AbortSignal): Promise<Api.Series["series"]> {
  const all: Api.Series["series"] = {};
  let cursor: string | null = null;
  do {
    const query: { cursor?: string } = cursor === null ? {} : { cursor };
    const page: Api.Series = await call("GET /v1/sweeps/{sweep}/trials/{number}/measurements", { path, query, signal });
    for (const [name, { steps, values }] of Object.entries(page.series)) {
      const known = (all[name] ??= { steps: [], values: [] });
      known.steps = known.steps.concat(steps);
      known.values = known.values.concat(values);
    }
    cursor = page.next_cursor;
  } while (cursor !== null);
  return all;
}
