/* The pixels of a PNG as Chromium writes it: 8 bits, RGB or RGBA, not interlaced. In this process, because a page
 * takes a hundred times as long: it compiles the loops anew for each call, beside its own work. */
import assert from "node:assert/strict";
import { inflateSync } from "node:zlib";

/** What PNG's fourth filter predicts from the bytes to the left, above, and above that on the left. */
function paeth(left, above, corner) {
  const [a, b, c] = [Math.abs(above - corner), Math.abs(left - corner), Math.abs(left + above - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** Undo the filter of each line, in place: `lines` has a byte with the filter before each line. */
function unfilter(lines, stride, size) {
  for (let at = 0; at < lines.length; at += stride + 1) {
    const filter = lines[at];
    for (let i = 1; i <= stride; i++) {
      const left = i > size ? lines[at + i - size] : 0;
      const above = at > 0 ? lines[at + i - stride - 1] : 0;
      const corner = i > size && at > 0 ? lines[at + i - size - stride - 1] : 0;
      if (filter === 1) lines[at + i] += left;
      else if (filter === 2) lines[at + i] += above;
      else if (filter === 3) lines[at + i] += (left + above) >> 1;
      else if (filter === 4) lines[at + i] += paeth(left, above, corner);
    }
  }
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
