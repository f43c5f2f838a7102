/* Numbers, times and sizes for people. The full value belongs in a title beside them. */
import type * as Api from "./api/types";

export const NONE = "–";

/** A number of the API as a number: the API sends NaN and the infinities as texts. Null: no
 * number. */
export function toNumber(value: Api.Number | null | undefined): number | null {
  if (value === null || value === undefined) return null;
  return typeof value === "number" ? value : Number(value);
}

/** The member of an object of the API with a name that a user chose; never an inherited member
 * ("constructor", "__proto__"). */
export const own = <T>(object: Record<string, T> | undefined, name: string): T | undefined => (object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined);

const trimZeros = (text: string) => text.replace(/(\.\d*?)0+(?=$|e)/, "$1").replace(/\.(?=$|e)/, "");

/** Four significant digits; whole numbers below a million stay whole. */
export function sig(value: number | null, digits = 4): string {
  if (value === null) return NONE;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  if (size >= 1e6 || size < 1e-3) return trimZeros(value.toExponential(digits - 1)).replace("e+", "e");
  return size >= 10 ** digits ? String(Math.round(value)) : trimZeros(value.toPrecision(digits));
}

/** The whole value of a parameter: a text as it is, a list, null or a text of which nothing would be seen as JSON. */
export const valueText = (value: Api.Value): string => (typeof value === "string" && value.trim() !== "" ? value : JSON.stringify(value));

export function param(value: Api.Value | undefined): string {
  if (value === undefined) return "";
  return typeof value === "number" ? sig(value) : valueText(value);
}

/** Parameters in the order of the sweep's document. The database returns JSON objects in another
 * order. */
export function inOrder(params: Api.Params, sweep: Api.Sweep | null): [string, Api.Value][] {
  const names = Object.keys(sweep?.document.parameters ?? {});
  const place = (name: string) => (names.includes(name) ? names.indexOf(name) : names.length);
  return Object.entries(params).sort(([a], [b]) => place(a) - place(b));
}

const counts = new Intl.NumberFormat("en-US"); // toLocaleString() makes one for each number

export const count = (n: number) => counts.format(n);

/** At most so many characters. Names that begin alike differ at their ends. */
export function cut(text: string, most: number): string {
  const head = (most - 1) >> 1;
  return text.length > most ? `${text.slice(0, head)}…${text.slice(head + 1 - most)}` : text;
}

/** So many of them. */
export const some = (n: number, what: string) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

const two = (n: number) => String(n).padStart(2, "0");

export function duration(ms: number | null): string {
  if (ms === null || !Number.isFinite(ms)) return NONE;
  if (ms < 0) return "0 s";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000);
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} m`;
  return `${Math.floor(s / 86_400)} d ${two(Math.floor(s / 3600) % 24)} h`;
}

const WHOLE: [number, string][] = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]];

/** How long ago, in one whole unit. */
export function ago(time: string | null | undefined, now: number): string {
  if (!time) return NONE;
  const ms = now - Date.parse(time);
  const unit = WHOLE.find(([size]) => ms >= size);
  return unit ? `${Math.floor(ms / unit[0])} ${unit[1]} ago` : "just now";
}

/** A time in the reader's own zone, for titles and details. */
export function clock(time: string | null | undefined): string {
  if (!time) return NONE;
  const d = new Date(time);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** Milliseconds from start to end, or until now while it runs; null before the start. `now` is not
 * called when there is an end. */
export function elapsed(start: string | null | undefined, end: string | null | undefined, now: () => number): number | null {
  return start ? (end ? Date.parse(end) : now()) - Date.parse(start) : null;
}

export function bytes(size: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (size >= 1000 && at < units.length - 1) {
    size /= 1000;
    at++;
  }
  return `${at === 0 ? size : size.toFixed(1)} ${units[at]}`;
}
