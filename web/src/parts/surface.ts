/* What the drawings of the views draw on: a canvas, or the text of an SVG file. A drawing is a
 * function of a Surface, so that a download shows what the page shows. Lengths are in CSS pixels. */
export type Anchor = "start" | "middle" | "end";

export interface Surface {
  readonly width: number;
  readonly height: number;
  /** A line through points; NaN begins a new one. */
  line(xs: ArrayLike<number>, ys: ArrayLike<number>, stroke: string, width: number, alpha: number): void;
  dot(x: number, y: number, radius: number, fill: string, alpha: number): void;
  box(x: number, y: number, width: number, height: number, fill: string, alpha: number): void;
  text(x: number, y: number, text: string, fill: string, anchor: Anchor): void;
}

export type Drawing = (surface: Surface) => void;

const FONT_PX = 11;
const FAMILY = "system-ui, sans-serif";

export function canvasSurface(ctx: CanvasRenderingContext2D, width: number, height: number): Surface {
  const with_ = (alpha: number, work: () => void) => {
    ctx.globalAlpha = alpha;
    work();
    ctx.globalAlpha = 1;
  };
  return {
    width, height,
    line: (xs, ys, stroke, thick, alpha) => with_(alpha, () => {
      ctx.strokeStyle = stroke;
      ctx.lineWidth = thick;
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
    text: (x, y, text, fill, anchor) => {
      ctx.fillStyle = fill;
      ctx.font = `${FONT_PX}px ${FAMILY}`;
      ctx.textAlign = anchor === "middle" ? "center" : anchor;
      ctx.textBaseline = "middle";
      ctx.fillText(text, x, y);
    },
  };
}

const round = (v: number) => String(Math.round(v * 100) / 100);
/** Text for XML: characters that XML does not allow are left out. */
const escaped = (text: string) => text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "").replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);

/** The drawing as a file. */
export function svgOf(draw: Drawing, width: number, height: number, title: string, background: string): string {
  const parts: string[] = [];
  draw({
    width, height,
    line: (xs, ys, stroke, thick, alpha) => {
      let [path, on] = ["", false];
      for (let i = 0; i < xs.length; i++) {
        if (Number.isNaN(xs[i]! + ys[i]!)) on = false;
        else {
          path += `${on ? "L" : "M"}${round(xs[i]!)} ${round(ys[i]!)}`;
          on = true;
        }
      }
      parts.push(`<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${thick}" opacity="${round(alpha)}"/>`);
    },
    dot: (x, y, radius, fill, alpha) => parts.push(`<circle cx="${round(x)}" cy="${round(y)}" r="${radius}" fill="${fill}" opacity="${round(alpha)}"/>`),
    box: (x, y, w, h, fill, alpha) => parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="${fill}" opacity="${round(alpha)}"/>`),
    text: (x, y, text, fill, anchor) => parts.push(`<text x="${round(x)}" y="${round(y)}" fill="${fill}" text-anchor="${anchor}" dominant-baseline="central">${escaped(text)}</text>`),
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FAMILY}" font-size="${FONT_PX}"><title>${escaped(title)}</title><rect width="100%" height="100%" fill="${background}"/>${parts.join("\n")}</svg>\n`;
}

/** Rows as CSV (RFC 4180). */
export function csvOf(head: readonly string[], rows: Iterable<readonly (string | number | null)[]>): string {
  const cell = (v: string | number | null) => { const text = v === null ? "" : String(v); return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  let text = `${head.map(cell).join(",")}\r\n`;
  for (const row of rows) text += `${row.map(cell).join(",")}\r\n`;
  return text;
}
