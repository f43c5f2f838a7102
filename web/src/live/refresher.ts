/* Coalesced reloading. `work` runs at most once per interval and never twice at once, no matter how
 * often `ask` is called; calls during a run cause one more run. In a hidden tab it waits until the
 * tab is visible again. A run that fails is repeated with growing pauses if a repeat can help. */
import { signal } from "@preact/signals";
import { Failure, isAbort, messageOf } from "../api/http";

/* Four loads a second look live; more would burden the server. */
export const INTERVAL_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

/** Begins a run that is due: at once, or when its turn comes. */
type Begin = (run: () => Promise<void>) => void;

export class Refresher {
  /** The error of the last run; null when it succeeded. */
  readonly error = signal<string | null>(null);
  /** The last run failed because the object does not exist. */
  readonly missing = signal(false);
  readonly #work: (signal: AbortSignal) => Promise<void>;
  readonly #begin: Begin;
  readonly #stop = new AbortController();
  #interval: number;
  #wanted = false;
  #begun = false; // it waits for its turn, or runs
  #timer: ReturnType<typeof setTimeout> | undefined;
  #endedAt = 0;
  #failures = 0;

  constructor(work: (signal: AbortSignal) => Promise<void>, interval = INTERVAL_MS, begin: Begin = (run) => void run()) {
    this.#work = work;
    this.#interval = interval;
    this.#begin = begin;
    document.addEventListener("visibilitychange", () => this.#plan(), { signal: this.#stop.signal });
  }

  /** From now on loads are at least so far apart. */
  pace(interval: number): void {
    this.#interval = interval;
  }

  ask(): void {
    this.#wanted = true;
    this.#plan();
  }

  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  #plan(): void {
    const first = this.#endedAt === 0;
    if (!this.#wanted || this.#begun || this.#timer !== undefined || this.#stop.signal.aborted) return;
    if (document.hidden && !first) return;
    const pause = this.#failures === 0 ? this.#interval : Math.min(this.#interval * 2 ** this.#failures, LONGEST_PAUSE_MS);
    const due = first ? 0 : Math.max(0, this.#endedAt + pause - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#begun = true;
      this.#begin(() => this.#run());
    }, due);
  }

  async #run(): Promise<void> {
    this.#wanted = false;
    try {
      await this.#work(this.#stop.signal);
      this.#failures = 0;
      this.error.value = null;
      this.missing.value = false;
    } catch (error) {
      if (!isAbort(error)) this.#failed(error);
    }
    this.#begun = false;
    this.#endedAt = performance.now();
    this.#plan();
  }

  #failed(error: unknown): void {
    this.#failures++;
    this.error.value = messageOf(error);
    this.missing.value = error instanceof Failure && error.status === 404;
    const lasting = error instanceof Failure && error.status >= 400 && error.status < 500 && error.status !== 429;
    if (!lasting) this.#wanted = true;
  }
}
