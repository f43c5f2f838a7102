/* The slow mode of the browser tests: ASSAY_WEB_SLOW=<seed> makes races likely. With three of four
 * seeds the page is slow: every answer and every event is delayed by a random 0 to 400 ms, and
 * Chromium's processor is throttled 4 to 8 times. With every fourth seed the test is slow (a pause
 * before each action in the browser) and the page is fast. */

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

/** Whether the page is slow. */
export const SLOW = isOn && seed % 4 !== 3;
/** The factor by which Chromium is throttled. */
export const THROTTLE = SLOW ? 4 + (seed % 5) : 1;
/** Milliseconds of pause before each action of a test in the browser. */
export const SLOW_TEST_MS = isOn && !SLOW ? 40 : 0;

const MOST_MS = 400;

/** Delay by at most this share of the longest delay of an answer; no delay when the page is not
 * slow. */
export const late = (share = 1) => (SLOW ? new Promise((resolve) => { setTimeout(resolve, random() * share * MOST_MS); }) : undefined);
