/* What only news cause, in turns: one piece of work after another, each after a rest of REST times what the last one cost.
 * So all of them together take a bounded share of a processor, however many trials come. What the user asks for does not
 * wait here.
 *
 * The cost is time by the clock, which on a busy machine is longer than that of the processor: there, changes are shown
 * less often. */
import { signal } from "@preact/signals";
import { useLayoutEffect, useState } from "preact/hooks";
import { isPressed, whenReleased } from "../live/press";

const REST = 64;
const LONGEST_MS = 4000; // of a rest: a machine that is busy with other work makes one piece seem very dear
const NOTICED_MS = 2000;

/** Milliseconds for which drawings ran that took further frames. */
let drawn = 0;

/** For a drawing: a frame of it took so long. */
export const noteDrawing = (ms: number): void => { drawn += ms; };

/** What waits for a frame. */
const forFrames: (() => void)[] = [];

function frame(): void {
  const work = forFrames.shift();
  if (forFrames.length > 0) requestAnimationFrame(frame);
  work?.();
}

/** Do this in a frame of its own, after what was asked for before: two charts in one frame would hold up the page for as long as
 * both take. */
export function inFrame(work: () => void): void {
  if (forFrames.push(work) === 1) requestAnimationFrame(frame);
}

/** The same for what moves or replaces something that may be pressed: in a frame in which nothing
 * is pressed. */
export function inCalmFrame(work: () => void): void {
  inFrame(() => {
    if (isPressed()) whenReleased(() => inCalmFrame(work));
    else work();
  });
}

/** Which parts of a view are made by now, from 0 to `last`: one more in each frame, as all at once would hold up the page. */
export function useStage(last: number): number {
  const [stage, setStage] = useState(0);
  useLayoutEffect(() => { if (stage < last) inCalmFrame(() => setStage(stage + 1)); }, [stage]);
  return stage;
}

/** Make a change in a frame of its own. The answer is what it costs the main thread until it is on the screen: computing,
 * layout and drawing. In a hidden tab nothing is drawn, and the change is made at once. */
export function costOf(change: () => void): Promise<number> {
  return new Promise((resolve) => {
    const make = () => {
      const began = performance.now();
      change();
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => { // the task after that frame
        port1.close();
        resolve(performance.now() - began);
      };
      port2.postMessage(null);
    };
    if (document.hidden) make();
    else inCalmFrame(make);
  });
}

const restOf = (cost: number): number => Math.min(LONGEST_MS, REST * cost);

export class Turns {
  /** So many seconds lie between two changes of a view, about; 0: too few to be noticed. */
  readonly every = signal(0);
  readonly #waiting = new Map<object, () => Promise<number>>();
  /** What the last work of each owner cost. */
  readonly #costs = new Map<object, number>();
  #busy = false;
  #stopped = false;
  /** Until then nothing rests. */
  #hurried = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The end of the last work, its cost, and what had been drawn before it. */
  #ended = -Infinity;
  #cost = 0;
  #drawnBefore = 0;

  /** Do this when its turn comes, in place of what the same owner waits for. `work` answers with its cost in ms. */
  ask(owner: object, work: () => Promise<number>): void {
    this.#waiting.set(owner, work);
    this.#plan();
  }

  /** No more news are to come, after what is there now: nothing rests for as long as a rest may take. */
  hurry(): void {
    this.#hurried = performance.now() + LONGEST_MS;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#plan();
  }

  /** The owner is gone. */
  drop(owner: object): void {
    this.#waiting.delete(owner);
    this.#costs.delete(owner);
  }

  stop(): void {
    this.#stopped = true;
    this.#waiting.clear();
    clearTimeout(this.#timer);
  }

  /** Milliseconds until the next turn. */
  get #rest(): number {
    const now = performance.now();
    return now < this.#hurried ? 0 : this.#ended + restOf(this.#cost + drawn - this.#drawnBefore) - now;
  }

  #plan(): void {
    if (this.#timer !== undefined || this.#busy || this.#stopped || this.#waiting.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#rest > 0) this.#plan(); // more was drawn meanwhile
      else void this.#next();
    }, Math.max(0, this.#rest));
  }

  async #next(): Promise<void> {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [owner, work] = first;
    this.#waiting.delete(owner);
    this.#busy = true;
    this.#drawnBefore = drawn;
    this.#cost = await work().catch(() => 0); // the owner shows what failed; the others go on
    this.#busy = false;
    this.#ended = performance.now();
    this.#costs.set(owner, this.#cost);
    const round = [...this.#costs.values()].reduce((sum, ms) => sum + ms + restOf(ms), 0);
    this.every.value = round < NOTICED_MS ? 0 : Math.round(round / 1000);
    this.#plan();
  }
}
