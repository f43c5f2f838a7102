/* The address of a view: `#/sweeps/digits/trials/3?metric=loss`. Every choice of the user (order,
 * filter, scale) is in its query, so that an address can be sent to somebody else.
 *
 * It is a fragment, not a path: it needs no rule in the server and works below any prefix. */
import { signal } from "@preact/signals";

export interface Route {
  path: string[];
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter((p) => p !== "").map(decode);
  return { path: parts.length === 0 ? ["sweeps"] : parts, query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // an invalid escape: keep the text as it is
  }
}

export const route = signal<Route>(read());

export function startRouter(): void {
  route.value = read();
  window.addEventListener("hashchange", () => { route.value = read(); });
}

export function href(path: (string | number)[], query: Record<string, string | null> = {}): string {
  const chosen = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== null && pair[1] !== "");
  const tail = chosen.length === 0 ? "" : `?${new URLSearchParams(chosen)}`;
  return `#/${path.map((p) => encodeURIComponent(String(p))).join("/")}${tail}`;
}

export function go(path: (string | number)[]): void {
  location.hash = href(path);
}

/** The path of the view that is on the page. */
let drawn = "";

/** This view is on the page now. */
export const noteDrawn = (path: readonly string[]): void => { drawn = path.join("/"); };

/** Change part of the query of this view without a new entry in the history. Does nothing when the
 * address already names another view, because this view is about to be removed: a field in it that
 * has the focus tells what was typed as it goes. */
export function choose(changes: Record<string, string | null>): void {
  const { path, query } = route.value;
  if (read().path.join("/") !== drawn) return;
  const all = { ...Object.fromEntries(query), ...changes };
  history.replaceState(null, "", href(path, all));
  route.value = read();
}
