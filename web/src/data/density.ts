/* Many lines as a picture of how many pass through each cell of a grid. What is drawn then depends
 * on the cells, not on the lines. */

/** Cells one above the other that are drawn alike, as one box. Columns from the left, rows from
 * below. */
export interface Boxes {
  columns: number;
  rows: number;
  x: Uint16Array;
  y: Uint16Array;
  height: Uint16Array;
  /** How many lines, from 1 to LEVELS, in steps of the logarithm. */
  level: Uint8Array;
  /** The mean of the lines' tones, rounded. */
  tone: Uint8Array;
}

export const LEVELS = 8;

export class Density {
  readonly columns: number;
  readonly rows: number;
  readonly #count: Float32Array;
  readonly #tone: Float32Array;

  constructor(columns: number, rows: number) {
    [this.columns, this.rows] = [columns, rows];
    this.#count = new Float32Array(columns * rows);
    this.#tone = new Float32Array(columns * rows);
  }

  /** A line between two points, in cells: x from 0 to `columns`, y from 0 to `rows`. The column in
   * which it ends is left to the next line, unless it is the last one. */
  line(x0: number, y0: number, x1: number, y1: number, tone: number): void {
    if (!(x1 > x0)) return;
    const [first, last] = [Math.max(0, Math.floor(x0)), Math.min(this.columns, x1 >= this.columns ? this.columns : Math.max(Math.floor(x1), Math.floor(x0) + 1))];
    const slope = (y1 - y0) / (x1 - x0);
    for (let c = first; c < last; c++) {
      const [from, to] = [Math.max(x0, c), Math.min(x1, c + 1)];
      const [a, b] = [y0 + slope * (from - x0), y0 + slope * (to - x0)];
      const low = Math.max(0, Math.floor(Math.min(a, b)));
      const high = Math.min(this.rows - 1, Math.floor(Math.max(a, b)));
      for (let r = low, at = c * this.rows + low; r <= high; r++, at++) {
        this.#count[at]! += 1;
        this.#tone[at]! += tone;
      }
    }
  }

  /** Many lines from one end to the other over whole columns: each end lies somewhere between y and
   * y + thick. `tones` is the sum of their tones. */
  bundle(x0: number, y0: number, x1: number, y1: number, thick: number, lines: number, tones: number): void {
    const slope = (y1 - y0) / (x1 - x0);
    const [count, tone] = [lines / thick, tones / thick];
    for (let c = x0, a = y0; c < x1; c++, a += slope) {
      const b = a + slope;
      const low = Math.floor(a < b ? a : b);
      const high = Math.min(this.rows, Math.floor(a < b ? b : a) + thick);
      for (let at = c * this.rows + (low < 0 ? 0 : low), end = c * this.rows + high; at < end; at++) {
        this.#count[at]! += count;
        this.#tone[at]! += tone;
      }
    }
  }

  boxes(): Boxes {
    const { columns, rows } = this;
    let most = 1;
    for (const n of this.#count) if (n > most) most = n;
    const scale = most > 1 ? (LEVELS - 1) / Math.log(most) : 0;
    const [xs, ys, heights, levels, tones]: number[][] = [[], [], [], [], []];
    for (let x = 0; x < columns; x++) {
      let [began, level, tone] = [0, 0, 0];
      const end = (y: number) => {
        if (level === 0) return;
        xs!.push(x); ys!.push(began); heights!.push(y - began); levels!.push(level); tones!.push(tone);
      };
      for (let y = 0; y < rows; y++) {
        const n = this.#count[x * rows + y]!;
        const here = n === 0 ? 0 : 1 + Math.round(scale * Math.log(n < 1 ? 1 : n));
        const its = n === 0 ? 0 : Math.round(this.#tone[x * rows + y]! / n);
        if (here === level && its === tone) continue;
        end(y);
        [began, level, tone] = [y, here, its];
      }
      end(rows);
    }
    return { columns, rows, x: Uint16Array.from(xs!), y: Uint16Array.from(ys!), height: Uint16Array.from(heights!), level: Uint8Array.from(levels!), tone: Uint8Array.from(tones!) };
  }
}
