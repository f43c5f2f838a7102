/* News wait while something is pressed. A browser makes a click of a press and a release on the
 * same element: if an answer of the server moved or replaced it between the two, the click would
 * go to something else, or to nothing. So what comes from elsewhere (answers, results of the
 * worker, the clock, parts of the page that were loaded) is shown before the press or after the
 * click. What the user causes is not held, as the marks of a drag.
 *
 * A press is one of the main button, of a finger, or of the space bar. It ends with its click,
 * or when it cannot become one. */
const TAP_MS = 100; // the click of a finger follows its release, within this time

let pressed = false;
let ending: ReturnType<typeof setTimeout> | undefined;
let waiting: (() => void)[] = [];

export const isPressed = (): boolean => pressed;

/** Do this now, or when nothing is pressed any more; in the order of the calls. */
export function whenReleased(work: () => void): void {
  if (pressed) waiting.push(work);
  else work();
}

/** Until nothing is pressed. */
export const released = (): Promise<void> => new Promise((resolve) => whenReleased(resolve));

/** Who drags a scroll bar is to see what comes in sight. */
function isOnScrollBar({ target: box, offsetX, offsetY }: PointerEvent): boolean {
  if (box === document.documentElement) return true;
  if (!(box instanceof HTMLElement)) return false;
  return (box.scrollHeight > box.clientHeight && offsetX >= box.clientWidth) || (box.scrollWidth > box.clientWidth && offsetY >= box.clientHeight);
}

function press(): void {
  clearTimeout(ending);
  pressed = true;
}

function release(): void {
  clearTimeout(ending);
  pressed = false;
  while (!pressed && waiting.length > 0) waiting.shift()!();
}

/** Its click comes first. */
function end(after: number): void {
  if (!pressed) return;
  clearTimeout(ending);
  ending = setTimeout(release, after);
}

export function startPress(): void {
  const on = <K extends keyof WindowEventMap>(type: K, act: (event: WindowEventMap[K]) => void) => addEventListener(type, act, { capture: true, passive: true });
  on("pointerdown", (e) => { if (e.isPrimary && e.button === 0 && !isOnScrollBar(e)) press(); });
  on("pointerup", (e) => end(e.pointerType === "mouse" ? 0 : TAP_MS));
  on("pointermove", (e) => { if (e.buttons === 0 && e.pointerType === "mouse") end(0); }); // released outside the window
  on("keydown", (e) => { if (e.key === " ") press(); });
  on("keyup", () => end(0));
  on("blur", (e) => { if (e.target === window) end(0); });
  for (const type of ["pointercancel", "dragend", "contextmenu", "pagehide"] as const) on(type, () => end(0));
}
