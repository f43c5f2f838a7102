/* The focus belongs to a row of a table, not to its place: news move rows, show other ones in
 * their places, or take them out of sight. Then the focus goes to the same control of the same
 * row; where that row is not there any more, to the table. */
import { useLayoutEffect, useRef, type MutableRef } from "preact/hooks";

type Key = string | number;

interface Held {
  row: Key;
  /** Its place among the controls of the row. */
  control: number;
}

const controlsOf = (tr: Element): HTMLElement[] => [...tr.querySelectorAll<HTMLElement>("a, button, input, select")];
const rowAt = (box: Element, at: number) => box.querySelector(`tbody > tr[aria-rowindex="${at + 2}"]`);

/** The control of a row that has the focus, as it is shown. */
function heldIn(box: Element, keyAt: (at: number) => Key | null): Held | null {
  const active = document.activeElement as HTMLElement | null;
  const tr = active && box.contains(active) ? active.closest("tbody > tr") : null;
  const row = tr ? keyAt(Number(tr.getAttribute("aria-rowindex")) - 2) : null;
  return tr === null || row === null ? null : { row, control: controlsOf(tr).indexOf(active!) };
}

/** `keyAt`: the key of the row at a place; null: no row is made there. Rows are made from `first`
 * to before `last`. */
export function useRowFocus(box: MutableRef<HTMLElement | null>, keyAt: (at: number) => Key | null, first: number, last: number): void {
  const held = useRef<Held | null>(null);
  const shown = useRef(keyAt);
  const element = box.current;
  if (element && element.contains(document.activeElement)) held.current = heldIn(element, shown.current); // before the rows change
  useLayoutEffect(() => {
    shown.current = keyAt;
    const [table, was] = [box.current, held.current];
    held.current = null;
    if (!table || was === null) return;
    const now = heldIn(table, keyAt);
    if (now !== null && now.row === was.row) return;
    for (let at = first; at < last; at++) {
      if (keyAt(at) !== was.row) continue;
      const control = controlsOf(rowAt(table, at) ?? table)[was.control];
      return (control ?? table).focus({ preventScroll: true });
    }
    table.focus({ preventScroll: true });
  });
}
