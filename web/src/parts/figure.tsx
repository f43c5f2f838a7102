/* A drawing on a canvas of the width of its place, drawn while it is in sight, and its downloads as
 * SVG, PNG and CSV. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { colour, shown } from "../theme";
import { canvasSurface, svgOf, type Drawing } from "./surface";

interface Props {
  /** For screen readers, and the title of the SVG file. */
  label: string;
  height: number;
  draw: Drawing;
  /** The beginning of the names of the files. */
  file: string;
  csv: () => string;
  class?: string;
  children?: ComponentChildren;
  onPointer?: (event: PointerEvent, x: number, y: number, width: number) => void;
}

/** Save a file. */
export function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // by then the browser has saved it
}

export function Figure({ label, height, draw, file, csv, class: cls, children, onPointer }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [inSight, setInSight] = useState(false);
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
    const [c, ctx] = [canvas.current, canvas.current?.getContext("2d")];
    if (!c || !ctx || width === 0 || !inSight) return;
    [c.width, c.height] = [width * devicePixelRatio, height * devicePixelRatio];
    ctx.scale(devicePixelRatio, devicePixelRatio);
    draw(canvasSurface(ctx, width, height));
  }, [draw, width, height, look, inSight]);
  const svg = () => save(new Blob([svgOf(draw, width, height, label, colour("--panel"))], { type: "image/svg+xml" }), `${file}.svg`);
  const png = () => {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [2 * width, 2 * height];
    const ctx = copy.getContext("2d");
    if (!ctx) return;
    ctx.fillStyle = colour("--panel");
    ctx.fillRect(0, 0, copy.width, copy.height);
    ctx.scale(2, 2);
    draw(canvasSurface(ctx, width, height));
    copy.toBlob((blob) => { if (blob) save(blob, `${file}.png`); });
  };
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
      <p class="downloads">Download <button type="button" class="link" onClick={svg}>SVG</button> <button type="button" class="link" onClick={png}>PNG</button> <button type="button" class="link" onClick={() => save(new Blob([csv()], { type: "text/csv" }), `${file}.csv`)}>CSV</button></p>
    </>
  );
}
