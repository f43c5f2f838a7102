/* Lists of numbers of trials as they stand in an address: "0,3,7-9". */
const MOST_NUMBERS = 1_000_000;

export function parseNumbers(text: string): number[] {
  const all: number[] = [];
  for (const part of text.split(",")) {
    const [, from, to] = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(part.trim()) ?? [];
    if (from === undefined) continue;
    for (let n = Number(from); n <= Number(to ?? from) && all.length < MOST_NUMBERS; n++) all.push(n);
  }
  return all;
}

export function formatNumbers(numbers: readonly number[]): string | null {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === sorted[j]! + 1) j++;
    parts.push(j === i ? String(sorted[i]) : j === i + 1 ? `${sorted[i]},${sorted[j]}` : `${sorted[i]}-${sorted[j]}`);
    i = j + 1;
  }
  return parts.length === 0 ? null : parts.join(",");
}
