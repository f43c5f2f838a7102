/* The frame of a drawing with two axes: where places between 0 and 1 lie on a surface; grid, ticks and
 * names of the axes. */
import { LEVELS, type Boxes } from "../data/density";
import { cut } from "../format";
import { colour } from "../theme";
import { shortened } from "./labels";
import type { Axis } from "./scale_of";
import type { Surface } from "./surface";

export interface Pad {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export const PAD: Pad = { left: 58, right: 14, top: 12, bottom: 36 };
const LABEL_PX = 64; // room for the label of a tick

export interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
  px(place: number): number;
  py(place: number): number;
}

/** The inner part of a surface of this size. */
export function frameOf(width: number, height: number, pad: Pad = PAD): Frame {
  const [left, right, top, bottom] = [pad.left, width - pad.right, pad.top, height - pad.bottom];
  return { left, right, top, bottom, px: (p) => left + p * (right - left), py: (p) => bottom - p * (bottom - top) };
}

/** Many lines, as how many pass where; `alpha`: of the places that most pass. */
export function drawDensity(s: Surface, f: Pad, { columns, rows, x, y, height, level, tone }: Boxes, fillOf: (tone: number) => string, alpha: number): void {
  const [wide, high] = [(f.right - f.left) / columns, (f.bottom - f.top) / rows];
  s.boxes(x.length, (i, box) => {
    box.x = f.left + x[i]! * wide;
    box.y = f.bottom - (y[i]! + height[i]!) * high;
    box.width = wide;
    box.height = height[i]! * high;
    box.fill = fillOf(tone[i]!);
    box.alpha = (alpha * level[i]!) / LEVELS;
  });
}

/** Grid, ticks and names. */
export function drawFrame(s: Surface, f: Frame, x: Axis, y: Axis): void {
  const [grid, text] = [colour("--grid"), colour("--text-2")];
  for (const t of y.ticks) {
    s.line([f.left, f.right], [f.py(t.place), f.py(t.place)], grid, 1, 1);
    s.text(f.left - 6, f.py(t.place), cut(t.label, 9), text, "end");
  }
  const every = Math.ceil(x.ticks.length / Math.max(1, Math.floor((f.right - f.left) / LABEL_PX)));
  for (const t of x.ticks) s.line([f.px(t.place), f.px(t.place)], [f.top, f.bottom], grid, 1, 1);
  const said = x.ticks.filter((_, i) => i % every === 0);
  const labels = shortened(said.map((t) => t.label), 10);
  said.forEach((t, i) => s.text(f.px(t.place), f.bottom + 10, labels[i]!, text, "middle"));
  s.text((f.left + f.right) / 2, f.bottom + 26, `${cut(x.label, 40)}${x.log ? " (log)" : ""}`, text, "middle");
  if (y.beyond) s.text(f.right, f.top, "far ones at the edge", text, "end");
}
