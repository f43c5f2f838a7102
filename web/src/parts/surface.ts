/* What the drawings of the views draw on: a canvas, or the text of an SVG file. A drawing is a
 * function of a Surface, so that a download shows what the page shows. Lengths are in CSS pixels.
 *
 * A drawing of many parts is a generator, which gives way after some of them: the page draws on in
 * the next frame (figure.tsx). */
export type Anchor = "start" | "middle" | "end";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
  fill: string;
  alpha: number;
}

export interface Surface {
  readonly width: number;
  readonly height: number;
  /** A line through points; NaN begins a new one. */
  line(xs: ArrayLike<number>, ys: ArrayLike<number>, stroke: string, width: number, alpha: number, dashed?: boolean): void;
  /** What lies between two lines over the same places. */
  area(xs: ArrayLike<number>, low: ArrayLike<number>, high: ArrayLike<number>, fill: string, alpha: number): void;
  dot(x: number, y: number, radius: number, fill: string, alpha: number): void;
  box(x: number, y: number, width: number, height: number, fill: string, alpha: number): void;
  /** Many boxes, whose edges are those of pixels: they cost what the canvas is large, not what each costs. Of two that overlap
   * the later one is seen. `place` writes the i-th one. */
  boxes(n: number, place: (i: number, box: Box) => void): void;
  /** As cheap: the same square or cross around many places. What has no place is NaN. */
  stamps(xs: ArrayLike<number>, ys: ArrayLike<number>, side: number, fill: string, cross: boolean): void;
  text(x: number, y: number, text: string, fill: string, anchor: Anchor): void;
  /** From here on nothing is drawn outside of a box; null: the end of that. */
  clip(box: { left: number; top: number; right: number; bottom: number } | null): void;
}

export type Drawing = (surface: Surface) => void | Generator<void>;

/** Draw all that is left. */
export function finish(drawn: void | Generator<void>): void {
  if (drawn) while (!drawn.next().done);
}

const NO_BOX: Box = { x: 0, y: 0, width: 0, height: 0, fill: "", alpha: 1 };
const DASHES = [4, 3];
const FONT_PX = 11;
const FAMILY = "system-ui, sans-serif";

/** For pictures that are made pixel by pixel: a canvas, and memory, which costs more to get than to clear. */
let scratch: HTMLCanvasElement | null = null;
let memory = new Uint32Array(0);

/** A colour as a pixel reads, without its alpha. */
function toneOf(ctx: CanvasRenderingContext2D, fill: string): number {
  ctx.fillStyle = fill;
  const tone = Number.parseInt(String(ctx.fillStyle).slice(1), 16); // an opaque colour reads "#rrggbb"
  return ((tone & 0xff) << 16) | (tone & 0xff00) | (tone >> 16); // every browser's machine is little-endian
}

/** Draw what `make` writes into pixels, w of them in a row. Ten thousand calls of fillRect() take the main thread 50 ms twice: for
 * the calls, and for drawing what they left. */
function drawPixels(ctx: CanvasRenderingContext2D, width: number, height: number, make: (pixels: Uint32Array, w: number, h: number) => void): void {
  const [w, h] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  if (memory.length < w * h) memory = new Uint32Array(w * h);
  const pixels = memory.subarray(0, w * h).fill(0);
  make(pixels, w, h);
  scratch ??= document.createElement("canvas");
  [scratch.width, scratch.height] = [w, h];
  scratch.getContext("2d", { willReadFrequently: true })?.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer, 0, 4 * w * h), w, h), 0, 0);
  ctx.drawImage(scratch, 0, 0, width, height);
}

function boxesInto(pixels: Uint32Array, w: number, h: number, n: number, place: (i: number, box: Box) => void, toneOf: (fill: string) => number): void {
  const scale = devicePixelRatio;
  const box: Box = { ...NO_BOX };
  const tones = new Map<string, number>();
  for (let i = 0; i < n; i++) {
    place(i, box);
    const tone = tones.get(box.fill) ?? toneOf(box.fill);
    tones.set(box.fill, tone);
    const pixel = ((Math.round(255 * box.alpha) << 24) | tone) >>> 0;
    const left = Math.max(0, Math.round(box.x * scale));
    const right = Math.min(w, Math.round((box.x + box.width) * scale));
    const bottom = Math.min(h, Math.round((box.y + box.height) * scale));
    for (let y = Math.max(0, Math.round(box.y * scale)); y < bottom; y++) for (let at = y * w + left, end = y * w + right; at < end; at++) pixels[at] = pixel;
  }
}

/** The places of a stamp's pixels, counted from that in its middle. */
function stampOf(wide: number, w: number, cross: boolean): Int32Array {
  const places: number[] = [];
  const half = wide >> 1;
  for (let y = 0; y < wide; y++) for (let x = 0; x < wide; x++) if (!cross || x === y || x + y === wide - 1) places.push((y - half) * w + x - half);
  return Int32Array.from(places);
}

function stampsInto(pixels: Uint32Array, w: number, h: number, xs: ArrayLike<number>, ys: ArrayLike<number>, side: number, cross: boolean, pixel: number): void {
  const scale = devicePixelRatio;
  const wide = Math.max(1, Math.round(side * scale));
  const stamp = stampOf(wide, w, cross);
  const shift = wide % 2 === 0 ? 0.5 : 0; // a pixel of the left half is in the middle of an even number
  for (let i = 0; i < xs.length; i++) {
    const x = Math.floor(xs[i]! * scale + shift);
    const y = Math.floor(ys[i]! * scale + shift);
    if (!(x >= wide && y >= wide && x + wide < w && y + wide < h)) continue; // NaN, or at an edge
    const at = y * w + x;
    for (let k = 0; k < stamp.length; k++) pixels[at + stamp[k]!] = pixel;
  }
}

export function canvasSurface(ctx: CanvasRenderingContext2D, width: number, height: number): Surface {
  const with_ = (alpha: number, work: () => void) => {
    ctx.globalAlpha = alpha;
    work();
    ctx.globalAlpha = 1;
  };
  return {
    width, height,
    line: (xs, ys, stroke, thick, alpha, dashed) => with_(alpha, () => {
      ctx.strokeStyle = stroke;
      ctx.lineWidth = thick;
      ctx.setLineDash(dashed ? DASHES : []);
      ctx.beginPath();
      let on = false;
      for (let i = 0; i < xs.length; i++) {
        const [x, y] = [xs[i]!, ys[i]!];
        if (Number.isNaN(x + y)) on = false;
        else if (on) ctx.lineTo(x, y);
        else {
          ctx.moveTo(x, y);
          on = true;
        }
      }
      ctx.stroke();
    }),
    area: (xs, low, high, fill, alpha) => with_(alpha, () => {
      ctx.fillStyle = fill;
      ctx.beginPath();
      for (let i = 0; i < xs.length; i++) ctx.lineTo(xs[i]!, high[i]!);
      for (let i = xs.length - 1; i >= 0; i--) ctx.lineTo(xs[i]!, low[i]!);
      ctx.fill();
    }),
    dot: (x, y, radius, fill, alpha) => with_(alpha, () => {
      ctx.fillStyle = fill;
      ctx.beginPath();
      ctx.arc(x, y, radius, 0, 2 * Math.PI);
      ctx.fill();
    }),
    box: (x, y, w, h, fill, alpha) => with_(alpha, () => {
      ctx.fillStyle = fill;
      ctx.fillRect(x, y, w, h);
    }),
    boxes: (n, place) => drawPixels(ctx, width, height, (pixels, w, h) => boxesInto(pixels, w, h, n, place, (fill) => toneOf(ctx, fill))),
    stamps: (xs, ys, side, fill, cross) => drawPixels(ctx, width, height, (pixels, w, h) => stampsInto(pixels, w, h, xs, ys, side, cross, (0xff000000 | toneOf(ctx, fill)) >>> 0)),
    text: (x, y, text, fill, anchor) => {
      ctx.fillStyle = fill;
      ctx.font = `${FONT_PX}px ${FAMILY}`;
      ctx.textAlign = anchor === "middle" ? "center" : anchor;
      ctx.textBaseline = "middle";
      ctx.fillText(text, x, y);
    },
    clip: (box) => {
      if (box === null) return ctx.restore();
      ctx.save();
      ctx.beginPath();
      ctx.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
      return ctx.clip();
    },
  };
}

const round = (v: number) => String(Math.round(v * 100) / 100);
/** Text for XML: characters that XML does not allow are left out. */
const escaped = (text: string) => text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "").replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);

/** The drawing as a file. */
export function svgOf(draw: Drawing, width: number, height: number, title: string, background: string): string {
  const parts: string[] = [];
  finish(draw({
    width, height,
    line: (xs, ys, stroke, thick, alpha, dashed) => {
      let [path, on] = ["", false];
      for (let i = 0; i < xs.length; i++) {
        if (Number.isNaN(xs[i]! + ys[i]!)) on = false;
        else {
          path += `${on ? "L" : "M"}${round(xs[i]!)} ${round(ys[i]!)}`;
          on = true;
        }
      }
      parts.push(`<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${thick}" opacity="${round(alpha)}"${dashed ? ` stroke-dasharray="${DASHES.join(" ")}"` : ""}/>`);
    },
    area: (xs, low, high, fill, alpha) => {
      const at = (ys: ArrayLike<number>, i: number) => `${round(xs[i]!)},${round(ys[i]!)}`;
      const all = Array.from(xs, (_, i) => i);
      parts.push(`<polygon points="${[...all.map((i) => at(high, i)), ...all.reverse().map((i) => at(low, i))].join(" ")}" fill="${fill}" opacity="${round(alpha)}"/>`);
    },
    dot: (x, y, radius, fill, alpha) => parts.push(`<circle cx="${round(x)}" cy="${round(y)}" r="${radius}" fill="${fill}" opacity="${round(alpha)}"/>`),
    box: (x, y, w, h, fill, alpha) => parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="${fill}" opacity="${round(alpha)}"/>`),
    boxes: (n, place) => { // one shape of each colour
      const shapes = new Map<string, string[]>();
      const box: Box = { ...NO_BOX };
      for (let i = 0; i < n; i++) {
        place(i, box);
        const look = `fill="${box.fill}" opacity="${round(box.alpha)}"`;
        const shape = shapes.get(look) ?? [];
        shapes.set(look, shape);
        shape.push(`M${round(box.x)} ${round(box.y)}h${round(box.width)}v${round(box.height)}h${round(-box.width)}z`);
      }
      for (const [look, shape] of shapes) parts.push(`<path d="${shape.join("")}" ${look}/>`);
    },
    stamps: (xs, ys, side, fill, cross) => {
      const shape = cross ? `l${side} ${side}m0 ${-side}l${-side} ${side}` : `h${side}v${side}h-${side}z`;
      parts.push(`<path d="${Array.from(xs, (x, i) => (Number.isNaN(x + ys[i]!) ? "" : `M${round(x - side / 2)} ${round(ys[i]! - side / 2)}${shape}`)).join("")}" ${cross ? `fill="none" stroke="${fill}"` : `fill="${fill}"`}/>`);
    },
    clip: (box) => {
      if (box === null) return parts.push("</g>");
      const id = `inside${parts.length}`;
      return parts.push(`<clipPath id="${id}"><rect x="${round(box.left)}" y="${round(box.top)}" width="${round(box.right - box.left)}" height="${round(box.bottom - box.top)}"/></clipPath><g clip-path="url(#${id})">`);
    },
    text: (x, y, text, fill, anchor) => parts.push(`<text x="${round(x)}" y="${round(y)}" fill="${fill}" text-anchor="${anchor}" dominant-baseline="central">${escaped(text)}</text>`),
  }));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FAMILY}" font-size="${FONT_PX}"><title>${escaped(title)}</title><rect width="100%" height="100%" fill="${background}"/>${parts.join("\n")}</svg>\n`;
}
