/* A text of any length in a box of its own: only the lines in sight exist, and it is searched in
 * parts, between which the page does other things. A line that is longer than PIECE characters is
 * shown as several. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../format";
import { Found } from "./found";

const PIECE = 400;
const ROW_PX = 18;
const AHEAD = 20;
const MOST_PX = 8_000_000; // browsers lay out no more than some 16 million; beyond, a pixel is several rows
const MOST_PLACES = 10_000;
const PART = 1 << 20; // characters that are searched at once

/** Where each row begins; the end of the text is last. */
export function rowsOf(text: string): Uint32Array {
  let starts = new Uint32Array(1024);
  let n = 0;
  const add = (at: number) => {
    if (n === starts.length) {
      const more = new Uint32Array(2 * n);
      more.set(starts);
      starts = more;
    }
    starts[n++] = at;
  };
  for (let from = 0; from < text.length;) {
    const newline = text.indexOf("\n", from);
    const end = newline < 0 ? text.length : newline + 1;
    for (; end - from > PIECE + 1; from += PIECE) add(from);
    add(from);
    from = end;
  }
  add(text.length);
  return starts.slice(0, n);
}

/** The row that holds the character `at`. */
export function rowOf(starts: Uint32Array, at: number): number {
  let [low, high] = [0, Math.max(0, starts.length - 2)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The places of a search, the first MOST_PLACES of them, whatever the case. */
async function search(text: string, wanted: string, isOver: () => boolean): Promise<number[]> {
  const places: number[] = [];
  const needle = wanted.toLowerCase();
  for (let from = 0; from < text.length && places.length < MOST_PLACES; from += PART) {
    const part = text.slice(from, from + PART + wanted.length - 1);
    const lower = part.toLowerCase();
    const [hay, of] = lower.length === part.length && needle.length === wanted.length ? [lower, needle] : [part, wanted];
    for (let at = hay.indexOf(of); at >= 0 && at < PART; at = hay.indexOf(of, at + of.length)) places.push(from + at);
    await new Promise((done) => setTimeout(done));
    if (isOver()) break;
  }
  return places;
}

export function LongText({ text, label, atEnd }: { text: string; label: string; atEnd?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const [wanted, setWanted] = useState("");
  const [places, setPlaces] = useState<number[]>([]);
  const [at, setAt] = useState(0);
  const starts = useMemo(() => rowsOf(text), [text]);
  const rows = starts.length - 1;
  const all = Math.min(rows * ROW_PX, MOST_PX);
  const shown = Math.max(1, Math.floor(view.height / ROW_PX));
  // The share of the way that is scrolled is the share of the rows that are passed.
  const passed = all > view.height ? Math.min(1, view.top / (all - view.height)) : 0;
  const top = Math.round(passed * Math.max(0, rows - shown));
  const [first, last] = [Math.max(0, top - AHEAD), Math.min(rows, top + shown + AHEAD)];

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const look = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    if (atEnd) element.scrollTop = all;
    look();
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [text]);

  const reveal = (place: number) => {
    const element = box.current;
    if (element && rows > shown) element.scrollTop = ((rowOf(starts, place) - shown / 2) / (rows - shown)) * (all - element.clientHeight);
  };
  useEffect(() => {
    let over = false;
    setAt(0);
    if (wanted === "") setPlaces([]);
    else void search(text, wanted, () => over).then((found) => {
      if (over) return;
      setPlaces(found);
      if (found[0] !== undefined) reveal(found[0]);
    });
    return () => { over = true; };
  }, [text, wanted]);
  const next = (by: number) => {
    if (places.length === 0) return;
    const to = (at + by + places.length) % places.length;
    setAt(to);
    reveal(places[to]!);
  };
  const [from, end] = [starts[first] ?? 0, starts[last] ?? text.length];
  const inSight = useMemo(() => places.filter((p) => p >= from && p < end).map((p) => p - from), [places, from, end]);
  const found = places.length === MOST_PLACES ? `more than ${count(MOST_PLACES - 1)}` : count(places.length);
  return (
    <>
      <form class="search bar" role="search" onSubmit={(e) => { e.preventDefault(); next(1); }}>
        <span class="faint">{count(rows)} {rows === 1 ? "line" : "lines"}</span>
        <span class="grow" />
        {wanted !== "" && <span role="status" class="faint">{places.length === 0 ? "not found" : `${count(at + 1)} of ${found}`}</span>}
        <input type="search" aria-label={`Search: ${label}`} placeholder="Search" value={wanted} onInput={(e) => setWanted(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === "Enter" && e.shiftKey) { e.preventDefault(); next(-1); } }} />
      </form>
      <div class="log long" ref={box} tabIndex={0} role="region" aria-label={label}>
        <div style={{ height: `${all}px` }}>
          <pre style={{ transform: `translateY(${view.top - (top - first) * ROW_PX}px)` }}><Rows text={text} starts={starts} first={first} last={last} places={inSight} length={wanted.length} at={inSight.indexOf((places[at] ?? -1) - from)} /></pre>
        </div>
      </div>
    </>
  );
}

/** The rows in sight, each on a line of its own, with the places of the search marked. */
function Rows({ text, starts, first, last, places, length, at }: { text: string; starts: Uint32Array; first: number; last: number; places: number[]; length: number; at: number }) {
  const from = starts[first] ?? 0;
  return (
    <>
      {Array.from({ length: Math.max(0, last - first) }, (_, i) => {
        const [begin, end] = [starts[first + i]! - from, starts[first + i + 1]! - from];
        const own = places.filter((p) => p >= begin && p < end).map((p) => p - begin);
        const line = text.slice(from + begin, from + end).replace(/[\r\n]+$/, "");
        return <div key={first + i}>{own.length === 0 ? line || " " : <Found text={line} places={own} length={length} at={own.indexOf((places[at] ?? -1) - begin)} />}</div>;
      })}
    </>
  );
}
