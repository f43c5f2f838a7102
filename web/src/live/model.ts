/* A model holds the data of one view, as signals. While the view is open, the model follows the
 * event stream of its scope and reloads the objects that events name. */
import { useEffect, useMemo } from "preact/hooks";
import { INTERVAL_MS, Refresher } from "./refresher";
import { follow } from "./stream";
import type * as Api from "../api/types";

/* How long the first load waits for the stream. A load before the stream begins must be
 * repeated. */
const STREAM_WAIT_MS = 300;

export abstract class Model {
  readonly refresher: Refresher;
  readonly #stop: () => void;
  readonly #timer: ReturnType<typeof setTimeout>;

  /** `interval`: of loads, at least; by default some look live. */
  constructor(eventsPath: string, interval = INTERVAL_MS) {
    this.refresher = new Refresher((signal) => this.load(signal), interval);
    this.#timer = setTimeout(() => this.refresher.ask(), STREAM_WAIT_MS);
    this.#stop = follow(eventsPath, {
      event: (event) => this.event(event),
      start: () => {
        clearTimeout(this.#timer);
        this.reset();
        this.refresher.ask();
      },
    });
  }

  /** All loaded data may be out of date. */
  protected abstract reset(): void;
  protected abstract event(event: Api.Event): void;
  protected abstract load(signal: AbortSignal): Promise<void>;

  close(): void {
    clearTimeout(this.#timer);
    this.#stop();
    this.refresher.stop();
  }
}

/** A model that lives as long as the component shows the object of `key`. */
export function useModel<M extends Model>(make: () => M, key: string): M {
  const model = useMemo(make, [key]);
  useEffect(() => () => model.close(), [model]);
  return model;
}

export const sweepEvents = (sweep: string) => `/v1/sweeps/${encodeURIComponent(sweep)}/events`;
