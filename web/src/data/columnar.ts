/* Reads the columnar format of `GET /v1/sweeps/{sweep}/table` and its like, little-endian:
 *   8 bytes "ASYCOLS1", u32 length of the header, u32 zero; the header (JSON, padded with spaces);
 *   then the arrays, each beginning at a multiple of 8 bytes from the start of the file.
 * The header: {rows, version, whole, columns: [{name, type, at, width?, words?, planes?}]}. Types: u8, u32,
 * f32, f64, and dict (`width` 2 or 4 bytes; the largest index says that there is no value). */
import { MISSING, roomOf, type Column } from "./columns";

/** The rows of an answer: all of them, or those that changed. */
export interface Part {
  version: string;
  whole: boolean;
  number: Uint32Array;
  columns: Column[];
}

const MAGIC = "ASYCOLS1";
const HEAD = 16;

interface Described {
  name: string;
  type: string;
  at: number;
  width?: number;
  /** Of f64: the first bytes of all values, then the second bytes, and so on. */
  planes?: boolean;
  words?: string[];
}

interface Header {
  rows: number;
  version: string | number;
  whole: boolean;
  columns: Described[];
}

function need(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`The table of the server cannot be read: ${what}`);
}

/** Any file of columns. */
export interface ColumnFile {
  rows: number;
  version: string;
  whole: boolean;
  columns: Column[];
}

function headerOf(buffer: ArrayBuffer): Header {
  need(buffer.byteLength >= HEAD, `it has ${buffer.byteLength} bytes, expected at least ${HEAD}`);
  const head = new DataView(buffer, 0, HEAD);
  const magic = new TextDecoder().decode(new Uint8Array(buffer, 0, 8));
  need(magic === MAGIC, `it begins with '${magic}', expected '${MAGIC}'`);
  const length = head.getUint32(8, true);
  need(HEAD + length <= buffer.byteLength, `its header has ${length} bytes, and the file ${buffer.byteLength}`);
  return JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, HEAD, length))) as Header;
}

export function readColumns(buffer: ArrayBuffer): ColumnFile {
  const header = headerOf(buffer);
  return { rows: header.rows, version: String(header.version), whole: header.whole, columns: header.columns.map((d) => columnOf(buffer, d, header.rows)) };
}

/** Parse the table of trials. Columns of f64 and u32 are views of the buffer where they can be. `withRoom`: of a
 * whole table every array is as long as a store of so many rows keeps it, so that the store takes it as it is, or empty
 * if every row has the same value. */
export function parseTable(buffer: ArrayBuffer, withRoom = false): Part {
  const header = headerOf(buffer);
  const room = withRoom && header.whole ? roomOf(header.rows) : header.rows;
  const columns: Column[] = [];
  let number: Uint32Array | null = null;
  for (const d of header.columns) {
    if (d.name === "number") number = new Uint32Array(arrayOf(buffer, d, header.rows));
    else columns.push(room > header.rows ? shortened(columnOf(buffer, d, header.rows, room), header.rows) : columnOf(buffer, d, header.rows));
  }
  need(number !== null, "it has no column 'number'");
  return { version: String(header.version), whole: header.whole, number, columns };
}

/** Give back the memory of a buffer that nothing views any more; in a browser that cannot, it stays until the worker
 * collects garbage. */
export function free(buffer: ArrayBufferLike & { transfer?: (length: number) => ArrayBuffer }): void {
  buffer.transfer?.(0);
}

/** The column, without its array if every row has the same value. */
function shortened(c: Column, rows: number): Column {
  const { values } = c;
  const one = values[0];
  if (one === undefined) return c;
  for (let i = 1; i < rows; i++) if (values[i] !== one && (values[i] === values[i] || one === one)) return c;
  free(values.buffer);
  return c.kind === "number" ? { ...c, values: new Float64Array(0), one } : { ...c, values: new Uint32Array(0), one };
}

/** Half a value at a time: every browser's machine is little-endian, as the file is. */
function fromPlanes(planes: Uint8Array, rows: number, room: number): Float64Array {
  const halves = new Uint32Array(room * 2);
  const plane = (i: number) => planes.subarray(i * rows, (i + 1) * rows);
  for (let half = 0; half < 2; half++) {
    const [a, b, c, d] = [plane(4 * half), plane(4 * half + 1), plane(4 * half + 2), plane(4 * half + 3)];
    for (let i = 0, to = half; i < rows; i++, to += 2) halves[to] = a[i]! | (b[i]! << 8) | (c[i]! << 16) | (d[i]! << 24);
  }
  return new Float64Array(halves.buffer).fill(NaN, rows);
}

function arrayOf(buffer: ArrayBuffer, d: Described, rows: number, room = rows): Float64Array | Float32Array | Uint32Array | Uint16Array | Uint8Array {
  const type = d.type === "dict" ? (d.width === 4 ? "u32" : d.width === 2 ? "u16" : "") : d.type;
  const size = { f64: 8, f32: 4, u32: 4, u16: 2, u8: 1 }[type];
  need(size !== undefined, `column '${d.name}' has the type '${d.type}'${d.width === undefined ? "" : ` of ${d.width} bytes`}`);
  need(Number.isInteger(d.at) && d.at >= 0 && d.at % 8 === 0 && d.at + rows * size <= buffer.byteLength, `column '${d.name}' lies at ${d.at}, outside of the file or at no multiple of 8`);
  if (d.planes && type === "f64") return fromPlanes(new Uint8Array(buffer, d.at, rows * 8), rows, room);
  const Made = { f64: Float64Array, f32: Float32Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array }[type as "f64"];
  return new Made(buffer, d.at, rows);
}

/** The values in an array of their own, the rest of which is filled. */
function widened<T extends Float64Array | Uint32Array>(made: T, raw: ArrayLike<number>, nothing: number): T {
  made.set(raw);
  return made.fill(nothing, raw.length) as T;
}

function columnOf(buffer: ArrayBuffer, d: Described, rows: number, room = rows): Column {
  const raw = arrayOf(buffer, d, rows, room);
  if (d.type !== "dict") return { name: d.name, kind: "number", values: raw instanceof Float64Array && raw.length === room ? raw : widened(new Float64Array(room), raw, NaN) };
  const words = d.words ?? [];
  const none = d.width === 2 ? 0xffff : MISSING;
  const values = raw instanceof Uint32Array && raw.length === room ? raw : widened(new Uint32Array(room), raw, MISSING);
  for (let i = 0; i < rows; i++) {
    const index = values[i]!;
    if (index < words.length) continue;
    need(index === none || index === MISSING, `column '${d.name}' has the word ${index} of ${words.length}`);
    values[i] = MISSING;
  }
  return { name: d.name, kind: "words", values, words };
}
