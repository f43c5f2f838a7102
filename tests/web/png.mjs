/* The pixels of a PNG as Chromium writes it: 8 bits, RGB or RGBA, not interlaced. In this process, because a page
 * takes a hundred times as long: it compiles the loops anew for each call, beside its own work. */
import assert from "node:assert/strict";
import { inflateSync } from "node:zlib";

/** What PNG's fourth filter predicts from the bytes to the left, above, and above that on the left. */
function paeth(left, above, corner) {
  const [a, b, c] = [Math.abs(above - corner), Math.abs(left - corner), Math.abs(left + above - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** What undoes each filter of a line: [from, to) of `lines`, `size` bytes of a pixel, `stride + 1` bytes of a line. The
 * first pixel of a line, and the first line, have nothing beside or above them. */
const UNDO = [
  () => undefined,
  (lines, from, to, size) => { for (let i = from + size; i < to; i++) lines[i] += lines[i - size]; },
  (lines, from, to, size, above) => { if (from > above) for (let i = from; i < to; i++) lines[i] += lines[i - above]; },
  (lines, from, to, size, above) => {
    for (let i = from; i < to; i++) lines[i] += ((i >= from + size ? lines[i - size] : 0) + (from > above ? lines[i - above] : 0)) >> 1;
  },
  (lines, from, to, size, above) => {
    for (let i = from; i < to; i++) {
      const has = i >= from + size;
      lines[i] += paeth(has ? lines[i - size] : 0, from > above ? lines[i - above] : 0, has && from > above ? lines[i - size - above] : 0);
    }
  },
];

/** Undo the filter of each line, in place: `lines` has a byte with the filter before each line. */
function unfilter(lines, stride, size) {
  for (let at = 0; at < lines.length; at += stride + 1) UNDO[lines[at]](lines, at + 1, at + 1 + stride, size, stride + 1);
}

/** { width, height, size: bytes of a pixel, at(x, y): where its bytes begin in `bytes` }. */
export function pixelsOf(png) {
  assert.equal(png.toString("latin1", 1, 4), "PNG");
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const [depth, colours, , , interlaced] = png.subarray(24, 29);
  assert.ok(depth === 8 && (colours === 2 || colours === 6) && interlaced === 0, "a PNG of another kind");
  const parts = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString("latin1", at + 4, at + 8) === "IDAT") parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const bytes = inflateSync(Buffer.concat(parts));
  const size = colours === 2 ? 3 : 4;
  unfilter(bytes, width * size, size);
  return { width, height, size, bytes, at: (x, y) => y * (width * size + 1) + 1 + x * size };
}
