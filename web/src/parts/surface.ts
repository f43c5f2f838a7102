/* What the drawings of the views draw on: a canvas, or the text of an SVG file. A drawing is a
 * function of a Surface, so that a download shows what the page shows. Lengths are in CSS pixels.
 *
 * A drawing of many parts is a generator, which gives way after some of them: the page draws on in
 * the next frame (figure.tsx). */
export type Anchor = "start" | "middle" | "end";

export interface Surface {
  readonly width: number;
  readonly height: number;
  /** A line through points; NaN begins a new one. */
  line(xs: ArrayLike<number>, ys: ArrayLike<number>, stroke: string, width: number, alpha: number, dashed?: boolean): void;
  /** What lies between two lines over the same places. */
  area(xs: ArrayLike<number>, low: ArrayLike<number>, high: ArrayLike<number>, fill: string, alpha: number): void;
  dot(x: number, y: number, radius: number, fill: string, alpha: number): void;
  box(x: number, y: number, width: number, height: number, fill: string, alpha: number): void;
  /** Squares around many places, at most a few pixels wide: they cost what the canvas is large, not what each costs. */
  squares(xs: ArrayLike<number>, ys: ArrayLike<number>, side: number, fill: string): void;
  text(x: number, y: number, text: string, fill: string, anchor: Anchor): void;
  /** From here on nothing is drawn outside of a box; null: the end of that. */
  clip(box: { left: number; top: number; right: number; bottom: number } | null): void;
}

export type Drawing = (surface: Surface) => void | Generator<void>;

/** Draw all that is left. */
export function finish(drawn: void | Generator<void>): void {
  if (drawn) while (!drawn.next().done);
}

const DASHES = [4, 3];
const FONT_PX = 11;
const FAMILY = "system-ui, sans-serif";

/** A canvas for pictures that are made pixel by pixel. */
let scratch: HTMLCanvasElement | null = null;

/** Ten thousand calls of fillRect() take the main thread 50 ms twice: for the calls, and for drawing what they left. */
function drawSquares(ctx: CanvasRenderingContext2D, width: number, height: number, xs: ArrayLike<number>, ys: ArrayLike<number>, side: number): void {
  const scale = devicePixelRatio;
  const [w, h, wide] = [Math.round(width * scale), Math.round(height * scale), Math.max(1, Math.round(side * scale))];
  const image = new ImageData(w, h);
  const pixels = new Uint32Array(image.data.buffer);
  const tone = Number.parseInt(String(ctx.fillStyle).slice(1), 16); // an opaque colour reads "#rrggbb"
  const pixel = (0xff000000 | ((tone & 0xff) << 16) | (tone & 0xff00) | (tone >> 16)) >>> 0; // every browser's machine is little-endian
  for (let i = 0; i < xs.length; i++) {
    const [left, top] = [Math.round(xs[i]! * scale - wide / 2), Math.round(ys[i]! * scale - wide / 2)];
    if (!(left >= 0 && top >= 0 && left + wide <= w && top + wide <= h)) continue; // NaN, or outside
    for (let y = top; y < top + wide; y++) pixels.fill(pixel, y * w + left, y * w + left + wide);
  }
  scratch ??= document.createElement("canvas");
  [scratch.width, scratch.height] = [w, h];
  scratch.getContext("2d", { willReadFrequently: true })?.putImageData(image, 0, 0);
  ctx.drawImage(scratch, 0, 0, width, height);
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
    squares: (xs, ys, side, fill) => {
      ctx.fillStyle = fill;
      drawSquares(ctx, width, height, xs, ys, side);
    },
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
    squares: (xs, ys, side, fill) => parts.push(`<path d="${Array.from(xs, (x, i) => `M${round(x - side / 2)} ${round(ys[i]! - side / 2)}h${side}v${side}h-${side}z`).join("")}" fill="${fill}"/>`),
    clip: (box) => {
      if (box === null) return parts.push("</g>");
      const id = `inside${parts.length}`;
      return parts.push(`<clipPath id="${id}"><rect x="${round(box.left)}" y="${round(box.top)}" width="${round(box.right - box.left)}" height="${round(box.bottom - box.top)}"/></clipPath><g clip-path="url(#${id})">`);
    },
    text: (x, y, text, fill, anchor) => parts.push(`<text x="${round(x)}" y="${round(y)}" fill="${fill}" text-anchor="${anchor}" dominant-baseline="central">${escaped(text)}</text>`),
  }));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FAMILY}" font-size="${FONT_PX}"><title>${escaped(title)}</title><rect width="100%" height="100%" fill="${background}"/>${parts.join("\n")}</svg>\n`;
}
