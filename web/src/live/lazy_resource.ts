/* A value that the server must compute. It is fetched when its panel becomes visible, and again
 * when it may have changed or was out of date when it arrived: at most every few seconds, for a tenth of
 * the time, and only while the panel is visible. */
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refresher } from "./refresher";

const EVERY_MS = 3000;
const REST = 9; // times as long as the last load took

export class LazyResource<T> {
  readonly value = signal<T | null>(null);
  readonly refresher: Refresher;
  /** Whether its panel is visible: else nothing is loaded. */
  readonly inSight = signal(false);
  #isOld = true;

  /** `isStale`: there are newer results than a value knows. */
  constructor(load: (signal: AbortSignal) => Promise<T>, isStale: (value: T) => boolean = () => false) {
    this.refresher = new Refresher(async (signal) => {
      this.#isOld = false;
      const began = performance.now();
      try {
        const value = await load(signal);
        this.refresher.pace(Math.max(EVERY_MS, REST * (performance.now() - began)));
        const before = this.value.peek();
        if (!isStale(value) || before === null || JSON.stringify(before) !== JSON.stringify(value)) this.value.value = value; // else it is that of before
        if (isStale(value)) this.mark();
      } catch (error) {
        this.#isOld = true;
        throw error;
      }
    }, EVERY_MS);
  }

  /** The loaded value may be out of date. */
  mark(): void {
    this.#isOld = true;
    this.#ask();
  }

  seen(inSight: boolean): void {
    this.inSight.value = inSight;
    this.#ask();
  }

  stop(): void {
    this.refresher.stop();
  }

  #ask(): void {
    if (this.#isOld && this.inSight.peek()) this.refresher.ask();
  }
}

/** For the element that shows the value: reports when it becomes visible or invisible. */
export function useSight<E extends Element>(resource: LazyResource<unknown>) {
  const element = useRef<E>(null);
  useEffect(() => {
    const stop = watch(element.current, (inSight) => resource.seen(inSight));
    return () => {
      stop();
      resource.seen(false);
    };
  }, [resource]);
  return element;
}

/** An element, and whether it is visible. */
export function useVisible<E extends Element>() {
  const element = useRef<E>(null);
  const [visible, setVisible] = useState(false);
  useEffect(() => watch(element.current, setVisible), []);
  return { element, visible };
}

function watch(element: Element | null, tell: (inSight: boolean) => void): () => void {
  if (!element) return () => undefined;
  const observer = new IntersectionObserver((entries) => tell(entries.at(-1)?.isIntersecting ?? false), { rootMargin: "100px" });
  observer.observe(element);
  return () => observer.disconnect();
}
