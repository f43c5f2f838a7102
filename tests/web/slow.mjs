/* The slow mode of the browser tests: ASSAY_WEB_SLOW=<seed> draws races out. By the seed, either the page is slow (every
 * answer and every event is late by a random 0 to 400 ms, Chromium's processor is throttled 4 to 8 times), or, for each
 * fourth seed, the test is (a pause before whatever it does in the browser) while the page is quick. */

/** Numbers in [0, 1) that are the same in every run (mulberry32). */
export function numbers(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const text = process.env.ASSAY_WEB_SLOW ?? "";
if (!/^\d{0,9}$/.test(text)) throw new Error(`ASSAY_WEB_SLOW is '${text}', must be a whole number`);
const seed = Number(text);
const isOn = text !== "";
const random = numbers(seed);

/** Is the page slow? */
export const SLOW = isOn && seed % 4 !== 3;
/** How many times slower than the machine Chromium computes. */
export const THROTTLE = SLOW ? 4 + (seed % 5) : 1;
/** Milliseconds before each thing that a test does in the browser. */
export const SLOW_TEST_MS = isOn && !SLOW ? 40 : 0;

const MOST_MS = 400;

/** Late by at most a share of what an answer may be late; at once where the page is not slow. */
export const late = (share = 1) => (SLOW ? new Promise((resolve) => { setTimeout(resolve, random() * share * MOST_MS); }) : undefined);
