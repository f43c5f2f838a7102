/* A text with the places that hold a search marked, one of them as the present one. */
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";

const MOST = 2000; // places that are marked; more are counted

/** Where the text has the search, whatever the case. */
export function placesOf(text: string, search: string): number[] {
  const [all, wanted] = [text.toLowerCase(), search.toLowerCase()];
  const places: number[] = [];
  // A text whose lower case has another length (some letters of Turkish) is searched as it is.
  const [hay, needle] = all.length === text.length && wanted.length === search.length ? [all, wanted] : [text, search];
  for (let at = needle === "" ? -1 : hay.indexOf(needle); at >= 0; at = hay.indexOf(needle, at + needle.length)) places.push(at);
  return places;
}

export function Found({ text, places, length, at }: { text: string; places: readonly number[]; length: number; at: number }) {
  const present = useRef<HTMLElement>(null);
  useLayoutEffect(() => present.current?.scrollIntoView({ block: "nearest" }), [at, length]);
  return useMemo(() => {
    const parts: preact.ComponentChildren[] = [];
    let from = 0;
    places.slice(0, MOST).forEach((place, i) => {
      parts.push(text.slice(from, place), <mark key={place} ref={i === at ? present : undefined} class={i === at ? "present" : ""}>{text.slice(place, place + length)}</mark>);
      from = place + length;
    });
    return <>{parts}{text.slice(from)}</>;
  }, [text, places, length, at]);
}
