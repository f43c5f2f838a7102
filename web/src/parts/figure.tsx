/* A drawing on a canvas of the width of its place, drawn while it is in sight, and its downloads as
 * SVG, PNG and CSV. A drawing of many parts takes several frames, on a canvas of its own, so that no
 * frame waits for it; the last picture stays until it is complete. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { inFrame, noteDrawing } from "../data/turns";
import { shown } from "../theme";
import { Downloads } from "./downloads";
import { canvasSurface, type Drawing } from "./surface";

interface Props {
  /** For screen readers, and the title of the SVG file. */
  label: string;
  height: number;
  draw: Drawing;
  /** The beginning of the names of the files. */
  file: string;
  csv: () => string | Promise<string>;
  class?: string;
  children?: ComponentChildren;
  onPointer?: (event: PointerEvent, x: number, y: number, width: number) => void;
}

const SLICE_MS = 10; // of a frame

/** Draw on a canvas, at once or over several frames; `apart`: from the next free frame on. The result stops it. */
function paint(canvas: HTMLCanvasElement, draw: Drawing, width: number, height: number, apart: boolean): () => void {
  const [w, h] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  const made = canvas.width === w && canvas.height === h ? document.createElement("canvas") : canvas;
  [made.width, made.height] = [w, h];
  const ctx = made.getContext("2d");
  if (!ctx) return () => undefined;
  ctx.scale(devicePixelRatio, devicePixelRatio);
  const rest = draw(canvasSurface(ctx, width, height));
  let stopped = false;
  const on = () => {
    if (stopped) return;
    const began = performance.now();
    let done = !rest;
    while (!done && performance.now() < began + SLICE_MS) done = rest!.next().done === true;
    if (done) show();
    else inFrame(on);
    noteDrawing(performance.now() - began);
  };
  const show = () => {
    const shown = made === canvas ? null : canvas.getContext("2d");
    if (!shown) return;
    shown.clearRect(0, 0, w, h);
    shown.drawImage(made, 0, 0);
  };
  if (apart) inFrame(on);
  else on();
  return () => { stopped = true; };
}

export function Figure({ label, height, draw, file, csv, class: cls, children, onPointer }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [inSight, setInSight] = useState(false);
  const wasInSight = useRef(false);
  const look = shown.value;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => setWidth(Math.max(160, element.clientWidth));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    const sight = new IntersectionObserver((entries) => setInSight(entries.at(-1)?.isIntersecting ?? false), { rootMargin: "100px" });
    sight.observe(element);
    return () => {
      observer.disconnect();
      sight.disconnect();
    };
  }, []);
  useLayoutEffect(() => {
    const cameInSight = inSight && !wasInSight.current; // beside whatever else that frame draws
    wasInSight.current = inSight;
    if (!canvas.current || width === 0 || !inSight) return undefined;
    return paint(canvas.current, draw, width, height, cameInSight);
  }, [draw, width, height, look, inSight]);
  const point = (e: PointerEvent) => {
    const at = canvas.current?.getBoundingClientRect();
    if (at && onPointer) onPointer(e, e.clientX - at.left, e.clientY - at.top, width);
  };
  return (
    <>
      <div class={`figure ${cls ?? ""}`} ref={box}>
        <canvas ref={canvas} role="img" aria-label={label} style={{ width: `${width}px`, height: `${height}px` }} onPointerDown={point} onPointerMove={point} onPointerUp={point} onPointerLeave={point} />
        {children}
      </div>
      <Downloads label={label} file={file} csv={csv} picture={() => ({ draw, width, height })} />
    </>
  );
}
