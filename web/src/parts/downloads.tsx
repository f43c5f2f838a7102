/* The downloads beside a drawing: SVG, PNG and CSV. */
import { colour } from "../theme";
import { attempt } from "./small";
import { canvasSurface, finish, svgOf, type Drawing } from "./surface";

/** Save a file. */
export function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // by then the browser has saved it
}

/** What is drawn, and how large. */
export interface Picture {
  draw: Drawing;
  width: number;
  height: number;
}

interface Props {
  /** The title of the SVG file. */
  label: string;
  /** The beginning of the names of the files. */
  file: string;
  /** null: there is nothing to draw yet. */
  picture: () => Picture | null;
  csv: () => string | Promise<string>;
}

const nameOf = (file: string) => file.replace(/[^\w.\-]+/g, "-");

export function Downloads({ label, file, picture, csv }: Props) {
  const name = nameOf(file);
  const svg = () => {
    const p = picture();
    if (p) save(new Blob([svgOf(p.draw, p.width, p.height, label, colour("--panel"))], { type: "image/svg+xml" }), `${name}.svg`);
  };
  const png = () => {
    const p = picture();
    const copy = document.createElement("canvas");
    const ctx = copy.getContext("2d");
    if (!p || !ctx) return;
    [copy.width, copy.height] = [2 * p.width, 2 * p.height];
    ctx.fillStyle = colour("--panel");
    ctx.fillRect(0, 0, copy.width, copy.height);
    ctx.scale(2, 2);
    finish(p.draw(canvasSurface(ctx, p.width, p.height)));
    copy.toBlob((blob) => { if (blob) save(blob, `${name}.png`); });
  };
  return <p class="downloads">Download <button type="button" class="link" onClick={svg}>SVG</button> <button type="button" class="link" onClick={png}>PNG</button> <button type="button" class="link" onClick={() => attempt(async () => save(new Blob([await csv()], { type: "text/csv" }), `${name}.csv`))}>CSV</button></p>;
}
