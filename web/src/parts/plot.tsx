/* uPlot in a component. A change of `deps` or the theme creates a new plot; a change of `data`
 * alone only updates it, once it is in sight. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { inFrame } from "../data/turns";
import { colour, shown } from "../theme";
import { sig } from "../format";

const LEAST_DRAG_PX = 6; // a shorter one is a click

export type Options = Omit<uPlot.Options, "width" | "height">;

interface Props {
  /** A description of the chart for screen readers, which cannot read a canvas. */
  label: string;
  height: number;
  data: uPlot.AlignedData;
  deps: readonly unknown[];
  options: () => Options;
  made?: (plot: uPlot) => void;
  class?: string;
}

export function Plot({ label, height, data, deps, options, made, class: cls }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isNew = useRef(true);
  const fed = useRef(data);
  const look = shown.value;

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const width = () => Math.max(160, element.clientWidth);
    const isLate = isNew.current; // making a chart and drawing its data are two frames
    isNew.current = false;
    const u = new uPlot({ ...options(), width: width(), height }, isLate ? data.map(() => []) as unknown as uPlot.AlignedData : data, element);
    plot.current = u;
    if (isLate) inFrame(() => { if (plot.current === u) u.setData(fed.current); });
    made?.(u);
    const observer = new ResizeObserver(() => { if (u.width !== width()) u.setSize({ width: width(), height }); });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current = null;
      u.destroy();
    };
  }, [look, height, ...deps]);

  const inSight = useInSight(box);
  useLayoutEffect(() => { // in the same frame as the text beside it
    if (fed.current === data || !inSight) return;
    fed.current = data;
    const u = plot.current;
    if (!u) return;
    // A zoom that the user chose by dragging stays while new points arrive.
    const zoomed = u.scales.x !== undefined && u.data[0].length > 0 && u.select.width === 0 && isZoomed(u);
    u.setData(data, !zoomed);
    if (zoomed) u.redraw();
  }, [data, inSight]);

  return <div class={`plot ${cls ?? ""}`} ref={box} role="img" aria-label={label} />;
}

/** Whether the element is in sight, or nearly; true until that is known. */
function useInSight(of: { current: Element | null }): boolean {
  const [inSight, setInSight] = useState(true);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setInSight(entries.at(-1)?.isIntersecting ?? true), { rootMargin: "100px" });
    if (of.current) observer.observe(of.current);
    return () => observer.disconnect();
  }, []);
  return inSight;
}

function isZoomed(u: uPlot): boolean {
  const { min, max } = u.scales.x as uPlot.Scale;
  const xs = u.data[0];
  const [first, last] = [xs[0], xs[xs.length - 1]];
  if (min === undefined || max === undefined || first === undefined || last === undefined || min === null || max === null) return false;
  return min > first || max < last;
}

/** For uPlot's hook `setSelect`: takes what was dragged over, in values of the scales. A box counts if one side of it is long enough. */
export const onDrag = (take: (x: [number, number], y: [number, number]) => void) => (u: uPlot): void => {
  const { left, top, width, height } = u.select;
  if (Math.max(width, u.cursor.drag?.y ? height : 0) < LEAST_DRAG_PX) return;
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  take([u.posToVal(left, "x"), u.posToVal(left + width, "x")], [u.posToVal(top + height, "y"), u.posToVal(top, "y")]);
};

/** An axis in the colours of the page. */
export function axis(more: Partial<uPlot.Axis> = {}): uPlot.Axis {
  const line = colour("--grid");
  return {
    stroke: colour("--text-2"), font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif", labelSize: 15, labelGap: 0, gap: 4,
    grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, ...more,
  };
}

/** An axis of whole numbers (trials, steps) along the bottom. */
export function wholeAxis(label: string): uPlot.Axis {
  const incrs = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].flatMap((p) => [p, 2 * p, 5 * p]);
  return axis({ label, incrs, size: 28, values: tickText });
}

/** Labels of ticks in the number format of the page; null: a tick of a logarithmic axis without a
 * label. */
export const tickText = (_: uPlot, ticks: (number | null)[]) => ticks.map((t) => (t === null ? "" : sig(t)));
