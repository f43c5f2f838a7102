/* The box beside the pointer that describes the trial under it; a click opens the trial. */
import type uPlot from "uplot";
import type * as Api from "../api/types";
import { numberAt, valueAt, wordAt, type Table } from "../data/columns";
import { param } from "../format";

const MOVED_PX = 4; // a press that moves further than this is a drag
const MOST_PARAMS = 12;

/** `under` finds what lies under the pointer, for a plot whose cursor moves. */
export function tipOf<T>(u: uPlot, under: () => T | undefined, lines: (found: T) => HTMLElement[], open: (found: T) => void): void {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  u.over.appendChild(tip);
  const show = () => {
    const left = u.cursor.left ?? -1;
    const found = under(); // also when the pointer leaves, so that the mark is removed
    tip.hidden = found === undefined || left < 0;
    if (found === undefined || left < 0) return;
    tip.replaceChildren(...lines(found));
    const right = left > u.over.clientWidth / 2;
    tip.style.left = right ? "" : `${left + 14}px`;
    tip.style.right = right ? `${u.over.clientWidth - left + 14}px` : "";
  };
  (u.hooks.setCursor ??= []).push(show);
  let down = { x: -1, y: -1 };
  u.over.addEventListener("mousedown", (e) => { down = { x: e.clientX, y: e.clientY }; });
  u.over.addEventListener("click", (e) => {
    const found = under();
    if (found !== undefined && Math.max(Math.abs(e.clientX - down.x), Math.abs(e.clientY - down.y)) < MOVED_PX) open(found);
  });
}

/** The description of a row's trial: number, state, value, further lines, parameters. */
export function trialLines(row: number, table: Table, sweep: Api.Sweep, value: string, extra: [string, string][]): HTMLElement[] {
  const line = (cls: string, key: string, text: string) => {
    const element = document.createElement("div");
    element.className = cls;
    for (const t of [key, text]) element.appendChild(document.createElement("span")).textContent = t;
    return element;
  };
  const params = Object.keys(sweep.document.parameters).flatMap((name): [string, string][] => { const v = valueAt(table.column(`param:${name}`), row); return v === null ? [] : [[name, param(v)]]; }).slice(0, MOST_PARAMS);
  const state = numberAt(table.column("infeasible"), row) === 1 ? "infeasible" : wordAt(table.state, row) ?? "";
  return [line("head", `#${table.number[row]} ${state}`, value), ...[...extra, ...params].map(([k, v]) => line("pair", k, v))];
}
