/* What a file is, by its name and its first bytes, so that it can be shown. Nothing of a file is ever
 * run or given to the browser as a document: an image is decoded to pixels, all else is text. */

export type Shown =
  | { kind: "image"; type: string }
  | { kind: "table"; separator: string }
  | { kind: "json" }
  | { kind: "text" }
  | { kind: "nothing"; why: string };

export const READ_MOST = 1 << 20;         // bytes of a text that are read
export const IMAGE_MOST = 16 << 20;       // bytes of an image
export const PIXELS_MOST = 50_000_000;    // of an image; a small file may say more

const ascii = (b: Uint8Array, at: number, length: number) => String.fromCharCode(...b.subarray(at, at + length));

/** The type of an image that the page decodes, by its first bytes; null: it is none. An SVG file is
 * a document and no image here. */
function imageType(b: Uint8Array): string | null {
  if (ascii(b, 1, 3) === "PNG" && b[0] === 0x89) return "image/png";
  if (b[0] === 0xff && b[1] === 0xd8 && b[2] === 0xff) return "image/jpeg";
  if (ascii(b, 0, 4) === "GIF8") return "image/gif";
  return null;
}

/** How many pixels the image says that it has; NaN: it does not say. */
export function pixelsOf(type: string, b: Uint8Array): number {
  const view = new DataView(b.buffer, b.byteOffset, b.byteLength);
  if (type === "image/png") return b.length < 24 ? NaN : view.getUint32(16) * view.getUint32(20);
  if (type === "image/gif") return b.length < 10 ? NaN : view.getUint16(6, true) * view.getUint16(8, true);
  for (let at = 2; at + 8 < b.length && b[at] === 0xff; at += 2 + view.getUint16(at + 2)) {
    const marker = b[at + 1]!;
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) return view.getUint16(at + 5) * view.getUint16(at + 7);
  }
  return NaN;
}

/** Bytes as text; null: they are none. A character that is cut at the end is left out. */
export function textOf(b: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(b, { stream: true });
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

export function shownAs(path: string, size: number, head: Uint8Array): Shown {
  const image = imageType(head);
  if (image !== null) {
    const pixels = pixelsOf(image, head);
    if (size > IMAGE_MOST) return { kind: "nothing", why: "The image is larger than 16 MiB." };
    if (!(pixels <= PIXELS_MOST)) return { kind: "nothing", why: "The image has too many pixels, or does not say how many." };
    return { kind: "image", type: image };
  }
  if (textOf(head) === null) return { kind: "nothing", why: "It is neither text nor an image that the page can decode." };
  const end = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase();
  if (end === "csv") return { kind: "table", separator: "," };
  if (end === "tsv") return { kind: "table", separator: "\t" };
  return { kind: end === "json" ? "json" : "text" };
}

/** The first rows of a table (RFC 4180; a quote that is never closed ends with the text). */
export function rowsOfTable(text: string, separator: string, most: number): string[][] {
  const rows: string[][] = [];
  let [row, cell, quoted]: [string[], string, boolean] = [[], "", false];
  const endRow = () => {
    row.push(cell);
    if (row.length > 1 || row[0] !== "") rows.push(row);
    [row, cell] = [[], ""];
  };
  for (let i = 0; i < text.length && rows.length < most; i++) {
    const c = text[i]!;
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') cell += text[++i]!;
      else quoted = false;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === separator) {
      row.push(cell);
      cell = "";
    } else if (c === "\n") endRow();
    else if (c !== "\r") cell += c;
  }
  if (rows.length < most && (cell !== "" || row.length > 0)) endRow();
  return rows;
}
