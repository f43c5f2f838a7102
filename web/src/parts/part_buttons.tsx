/* Buttons that choose the part of an axis that a chart shows: for the keyboard, and beside dragging. */
interface Props {
  /** What the axis is, for screen readers. */
  label: string;
  /** The ends of the axis, … */
  first: number;
  last: number;
  /** … and of the part that is shown. */
  from: number;
  to: number;
  /** The shortest part. */
  least: number;
  /** Null: the whole axis. */
  choose: (part: readonly [number, number] | null) => void;
}

export function PartButtons({ label, first, last, from, to, least, choose }: Props) {
  const set = (low: number, high: number) => {
    const [a, b] = [Math.max(first, Math.round(low)), Math.min(last, Math.round(high))];
    if (b - a >= least) choose(a <= first && b >= last ? null : [a, b]);
  };
  const span = to - from;
  const isWhole = from <= first && to >= last;
  const move = (low: number) => { const at = Math.min(last - span, Math.max(first, low)); set(at, at + span); };
  return (
    <span class="zoom" role="group" aria-label={label}>
      <button type="button" class="quiet" aria-label="Earlier" disabled={from <= first} onClick={() => move(from - span / 2)}>←</button>
      <button type="button" class="quiet" aria-label="Zoom in" disabled={span / 2 < least} onClick={() => set(from + span / 4, to - span / 4)}>+</button>
      <button type="button" class="quiet" aria-label="Zoom out" disabled={isWhole} onClick={() => set(from - span / 2, to + span / 2)}>−</button>
      <button type="button" class="quiet" aria-label="Later" disabled={to >= last} onClick={() => move(from + span / 2)}>→</button>
      <button type="button" class="quiet" disabled={isWhole} onClick={() => choose(null)}>Whole</button>
    </span>
  );
}
