/* Files of a trial with contents of each kind, and hostile ones. */
import { createHash } from "node:crypto";
import * as zlib from "node:zlib";

const chunk = (type, body) => {
  const bytes = Buffer.concat([Buffer.from(type), body]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length);
  sum.writeUInt32BE(crcOf(bytes));
  return Buffer.concat([length, bytes, sum]);
};
/** Node.js 18 has no zlib.crc32. */
const crcOf = zlib.crc32 ?? ((bytes) => {
  let c = ~0;
  for (const b of bytes) {
    c ^= b;
    for (let k = 0; k < 8; k++) c = (c >>> 1) ^ (c & 1 ? 0xedb88320 : 0);
  }
  return ~c >>> 0;
});

/** A PNG file whose header says this size; its pixels are those of `real` × `real`. */
function png(width, height, real) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 0, 0, 0, 0], 8);
  const pixels = Buffer.concat(Array.from({ length: real }, (_, y) => Buffer.from([0, ...Array.from({ length: real }, (_, x) => (x * y * 4) % 256)])));
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]), chunk("IHDR", head), chunk("IDAT", zlib.deflateSync(pixels)), chunk("IEND", Buffer.alloc(0))]);
}

/** By path: the artifacts, and all output of attempt 2. */
export function invented(nasty) {
  const lines = Array.from({ length: 30_000 }, (_, i) => `line ${i} of the output`);
  lines[20_000] = `needle ${"x".repeat(50_000)}`;
  const artifacts = {
    "confusion.png": png(64, 64, 64),
    "bomb.png": png(60_000, 60_000, 4),
    "evil.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1</script></svg>`,
    "evil.html": `<!doctype html><script>window.pwned=1</script>${nasty}`,
    "rows.csv": `name,loss,"a ""quoted"" name"\r\n${Array.from({ length: 300 }, (_, i) => `row ${i},${i / 7},"two\nlines"`).join("\r\n")}\r\n`,
    "notes.json": JSON.stringify({ layers: [64, 32], name: nasty }),
    "weights.bin": Buffer.from(Array.from({ length: 512 }, (_, i) => i % 256)),
    "empty.txt": "",
  };
  const output = { "attempt-2/output.log": `${nasty}\n${lines.join("\n")}\nthe end\n` };
  const blobs = new Map([["ab".repeat(32), Buffer.from(`age,kind,income\n${Array.from({ length: 40 }, (_, i) => `${20 + i},"${i % 2 ? "a" : "b, c"}",<=50K`).join("\n")}\n`)]]);
  const listed = (files) => Object.entries(files).map(([path, text]) => {
    const bytes = Buffer.from(text);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    blobs.set(sha256, bytes);
    return { path, size: bytes.length, sha256 };
  });
  return { artifact: listed(artifacts), log: listed(output), blobs };
}
