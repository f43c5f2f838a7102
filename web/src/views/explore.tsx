/* All completed trials by their parameters: parallel coordinates, each parameter against a metric,
 * and two parameters with the metric. Ranges that are chosen in one of them (`brush` of the address)
 * highlight the trials in all. The worker computes what is drawn (data/explore.ts). */
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type * as Api from "../api/types";
import type { Column, Table } from "../data/columns";
import type { Explored, ExploreInput } from "../data/explore";
import { SHADES } from "../data/explore";
import { brush, brushes, brushText, clearSelection, colourColumn, filterText, pickedText, setColour } from "../data/selection";
import type { SweepTable } from "../data/sweep_table";
import { useJob } from "../data/use_job";
import { count, sig } from "../format";
import { useVisible } from "../live/lazy_resource";
import { hasEnded, type SweepModel } from "../live/sweep";
import { judgedBy, valueColumn } from "../parts/objectives";
import type { Goal } from "../parts/scale_of";
import { Chips } from "../parts/small";
import { choose, href, route } from "../route";
import { colour } from "../theme";
import { Contour, contourAxes } from "./contour";
import { axesInOrder, MOST_LINES, Parallel } from "./parallel";
import { MOST_DOTS, Slices } from "./slices";

/** What the drawings need. */
export interface Exploring {
  model: SweepModel;
  sweep: Api.Sweep;
  trials: SweepTable;
  table: Table;
  explored: Explored;
  metric: { column: string; name: string; goal: Goal };
  names: readonly string[];
}

const VIEWS = [{ id: "parallel", label: "Parallel coordinates" }, { id: "slices", label: "Slices" }, { id: "contour", label: "Contour" }] as const;
type View = (typeof VIEWS)[number]["id"];

/** The metric that colours the trials: one of the objectives and constrained metrics. */
function metricOf(sweep: Api.Sweep): Exploring["metric"] {
  const named = colourColumn.value.replace(/^metric:/, "");
  const name = judgedBy(sweep).find((n) => n === named) ?? sweep.metric.name;
  return { column: valueColumn(sweep, name), name, goal: sweep.metrics.find((m) => m.name === name)?.goal ?? null };
}

function inputOf(sweep: Api.Sweep, view: View, names: readonly string[], metric: Exploring["metric"]): ExploreInput {
  const shared = { parameters: sweep.document.parameters as Record<string, Api.Parameter>, metric, filter: filterText.value, brush: brushText.value, picked: pickedText.value };
  if (view === "parallel") return { ...shared, names, most: MOST_LINES, lines: axesInOrder(names, metric.column) };
  if (view === "contour") return { ...shared, names: contourAxes(names), most: MOST_DOTS, lines: null };
  return { ...shared, names, most: Math.max(1, Math.floor(MOST_DOTS / Math.max(1, names.length))), lines: null };
}

export function ExplorePanel({ model, sweep }: { model: SweepModel; sweep: Api.Sweep }) {
  const { trials } = model;
  const metric = metricOf(sweep);
  const chosen = route.value.query.get("explore");
  const view = VIEWS.find((v) => v.id === chosen)?.id ?? "parallel";
  const names = Object.keys(sweep.document.parameters ?? {});
  const { element, visible } = useVisible<HTMLDivElement>();
  const { done, error, isOld } = useJob(trials, "explore", inputOf(sweep, view, names, metric), visible);
  const computed = useRef(view); // the view that `done` is of: another one has other axes
  if (!isOld) computed.current = view;
  const comes = sweep.counts.completed > 0 || (sweep.counts.total > 0 && !hasEnded(sweep.state)); // its place is kept until then
  return <div class="in-sight" ref={element}>{names.length > 0 && (comes || (done !== null && done.output.count > 0)) && <Panel model={model} sweep={sweep} done={done} error={error} view={view} isReady={computed.current === view} inSight={visible} names={names} metric={metric} />}</div>;
}

/** As high as what will be drawn, so that what is below does not move. */
function Room({ view, names, children }: { view: View; names: readonly string[]; children: ComponentChildren }) {
  if (view !== "slices") return <p class={`hint tall room-${view}`} role="status">{children}</p>;
  return <div class="slices" role="status">{names.map((n, i) => <p key={n} class="hint">{i === 0 && children}</p>)}</div>;
}

/** Why nothing is drawn of the completed trials. */
function whyNone(sweep: Api.Sweep, done: PanelProps["done"]): string {
  if (done === null || (done.output.count === 0 && sweep.counts.completed > 0 && filterText.value === "")) return "Loading…"; // the table follows
  return filterText.value === "" ? "No trial has completed yet." : "No completed trial passes the filter.";
}

interface PanelProps {
  model: SweepModel;
  sweep: Api.Sweep;
  done: { output: Explored; table: Table } | null;
  error: string | null;
  view: View;
  /** `done` is of this view. */
  isReady: boolean;
  inSight: boolean;
  names: readonly string[];
  metric: Exploring["metric"];
}

function Panel({ model, sweep, done, error, view, isReady, inSight, names, metric }: PanelProps) {
  const { trials } = model;
  const explored = done === null || done.output.count === 0 ? null : done.output;
  const data: Exploring | null = explored && { model, sweep, trials, table: done!.table, explored, metric, names };
  const metrics = judgedBy(sweep);
  return (
    <section class="panel explore" aria-label="Parameters of all trials" data-drawn={explored?.count ?? 0} data-marked={explored?.marked ?? 0}>
      <div class="bar">
        <h2>Parameters of all trials</h2>
        <Chips label="View" chosen={view} options={[...VIEWS]} choose={(id) => choose({ explore: id === "parallel" ? null : id })} />
        {metrics.length > 1 && <label class="toggle">Metric <select value={metric.name} onChange={(e) => setColour(e.currentTarget.value === sweep.metric.name ? null : `metric:${e.currentTarget.value}`)}>{metrics.map((m) => <option key={m} value={m}>{m}</option>)}</select></label>}
        <ul class="legend shade-legend"><li aria-hidden="true">{Array.from({ length: SHADES }, (_, i) => <i key={i} style={{ background: `var(--shade-${i + 1})` }} />)}</li><li>worst to best fifth by {metric.name}</li>{explored !== null && explored.infeasible > 0 && <li class="l-infeasible">infeasible</li>}</ul>
        <span class="grow" />
        <span role="status" class="faint">{explored === null ? "" : explored.marked !== null ? <><b data-testid="marked">{count(explored.marked)}</b> of {count(explored.count)} highlighted</> : `${count(explored.count)} completed`}</span>
        {explored !== null && explored.marked !== null && <button type="button" class="quiet" onClick={clearSelection}>Clear</button>}
      </div>
      {error !== null && <p class="stale" role="status">Not up to date: {error}</p>}
      {data === null || !isReady ? <Room view={view} names={names}>{inSight && (data === null ? whyNone(sweep, done) : "Loading…")}</Room> : view === "slices" ? <Slices data={data} /> : view === "contour" ? <Contour data={data} /> : <Parallel data={data} />}
      {data !== null && <Ranges data={data} />}
    </section>
  );
}

/** The file of what is drawn, of all trials. */
export function csvFile({ trials, metric, names }: Exploring): Promise<string> {
  const columns = [...names.map((n) => ({ name: `param:${n}`, head: `param:${n}` })), { name: metric.column, head: metric.name }];
  return trials.run("csv", { rows: { filter: filterText.value, sort: "", descending: false, state: "", group: "" }, metric: metric.column, brush: brushText.value, picked: pickedText.value, highlighted: "column", columns });
}

/** The colours by fifth: infeasible ones first, then from the worst to the best. */
export const shadesNow = (): string[] => [colour("--infeasible"), ...Array.from({ length: SHADES }, (_, i) => colour(`--shade-${i + 1}`))];

/* ---- ranges, for the keyboard and exact values ---- */

function Ranges({ data: { table, metric, sweep, names, explored } }: { data: Exploring }) {
  const columns = [...names.map((n) => [`param:${n}`, n] as const), [metric.column, metric.name] as const];
  const { best, marked } = explored;
  const [isOpen, setOpen] = useState(false); // a parameter may have a thousand words
  return (
    <details class="ranges" open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Ranges{brushes.value.size > 0 && ` (${brushes.value.size})`}</summary>
      <div class="range-list">{isOpen && columns.map(([id, label]) => { const column = table.column(id); return column && <RangeOf key={id} column={column} label={label} />; })}</div>
      {best.length > 0 && <p class="note">Highlighted, best first: {best.map(({ number, value }, i) => <span key={number}>{i > 0 && ", "}<a href={href(["sweeps", sweep.id, "trials", number])}>#{number}</a> ({sig(value)})</span>)}{(marked ?? 0) > best.length ? " …" : ""}</p>}
    </details>
  );
}

const NO_WORDS: readonly string[] = [];

function RangeOf({ column, label }: { column: Column; label: string }) {
  const id = column.name;
  const range = brushes.value.get(id);
  const words = column.kind === "words" ? column.words : NO_WORDS;
  const sorted = useMemo(() => [...words].sort(), [words, words.length]);
  if (column.kind === "words") {
    const chosen = range && "words" in range ? range.words : [];
    return (
      <label><span>{label}</span>
        <select multiple size={Math.min(4, Math.max(2, column.words.length))} aria-label={`${label}: one of`} onChange={(e) => { const words = [...e.currentTarget.selectedOptions].map((o) => o.value); brush(id, words.length > 0 ? { words } : null); }}>
          {sorted.map((w) => <option key={w} value={w} selected={chosen.includes(w)}>{w}</option>)}
        </select>
      </label>
    );
  }
  const [min, max] = range && "min" in range ? [range.min, range.max] : [null, null];
  const set = (a: number | null, b: number | null) => brush(id, a === null && b === null ? null : { min: a, max: b });
  return (
    <div class="range"><span>{label}</span>
      <Bound label={`${label}, from`} hint="from" value={min} set={(v) => set(v, max)} />
      <Bound label={`${label}, to`} hint="to" value={max} set={(v) => set(min, v)} />
    </div>
  );
}

/** One end of a range. What is typed stays until it is taken, whatever is drawn meanwhile; null:
 * no bound. */
function Bound({ label, hint, value, set }: { label: string; hint: string; value: number | null; set: (value: number | null) => void }) {
  const [typed, setTyped] = useState<string | null>(null);
  const take = (text: string) => {
    const v = text.trim() === "" ? null : Number(text);
    if (Number.isNaN(v)) return;
    setTyped(null);
    set(v);
  };
  return <input type="text" inputMode="decimal" aria-label={label} placeholder={hint} value={typed ?? (value === null ? "" : sig(value, 6))} onInput={(e) => setTyped(e.currentTarget.value)} onChange={(e) => take(e.currentTarget.value)} />;
}
