/* The labels of an axis of words. */
import { cut } from "../format";

/** Labels of at most `most` characters. Where cutting them would leave nothing that tells them apart, what all of them begin
 * and end with is left out. */
export function shortened(labels: readonly string[], most: number): string[] {
  const short = labels.map((l) => cut(l, most));
  const [first = [], ...others] = labels.map((l) => [...l]);
  if (others.length === 0 || new Set(short).size === new Set(labels).size) return short;
  const alike = (at: (letters: readonly string[], i: number) => string | undefined) => { let n = 0; while (n < first.length && others.every((o) => at(o, n) === at(first, n))) n++; return n; };
  const [begin, end] = [alike((l, i) => l[i]), alike((l, i) => l.at(-1 - i))];
  return [first, ...others].map((l) => cut(`${begin > 0 ? "…" : ""}${l.slice(begin, Math.max(begin + 1, l.length - end)).join("")}${end > 0 ? "…" : ""}`, most));
}
