/* The clock of the page: what shows how long something took, or how long ago it was, follows it. It ticks once a second,
 * and stops in a hidden tab.
 *
 * A tick is a frame with its layout and painting. What changes the page about as often brings the tick along, so that both
 * are one frame. */
import { signal } from "@preact/signals";
import { isPressed } from "./press";

const TICK_MS = 1000;
const BROUGHT_MS = 1500; // after a tick that was brought along: the next change brings the next one

/** Milliseconds since 1970, of the last tick. */
export const now = signal(Date.now());

let timer = setTimeout(tick, TICK_MS);

function plan(ms: number): void {
  clearTimeout(timer);
  timer = setTimeout(tick, ms);
}

function tick(): void {
  if (!document.hidden && !isPressed()) now.value = Date.now();
  plan(TICK_MS);
}

/** For what changes the page: tick now, in its frame. */
export function bringTick(): void {
  now.value = Date.now();
  plan(BROUGHT_MS);
}
