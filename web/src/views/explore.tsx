/* All completed trials by their parameters: parallel coordinates, and each parameter against a
 * metric. Ranges that are chosen in one of them (`brush` of the address) highlight the trials in
 * both. */
import { useMemo, useState } from "preact/hooks";
import type * as Api from "../api/types";
import { numberAt, valueAt, type Table } from "../data/columns";
import { orderRows } from "../data/order";
import { brush, brushes, clearSelection, colourColumn, currentTable, highlight, setColour, shownRows, type Highlight, type Range } from "../data/selection";
import { count, sig } from "../format";
import { judgedBy } from "../parts/objectives";
import { Figure } from "../parts/figure";
import { parameterOf, scaleOf, type Scale } from "../parts/scale_of";
import { Chips } from "../parts/small";
import { csvOf, type Surface } from "../parts/surface";
import { choose, go, href, route } from "../route";
import { colour } from "../theme";

const MOST_LINES = 2000; // lines that one drawing takes in a frame; the highlighted ones first
const MOST_DOTS = 10_000; // dots of all slices together
const SHADES = 5;

type Goal = "minimize" | "maximize" | null;

interface Data {
  sweep: Api.Sweep;
  table: Table;
  /** Completed trials with a value of the metric: infeasible ones, then the others, worst first. */
  rows: number[];
  /** How many of them are infeasible. */
  infeasible: number;
  /** By row: the fifth, from 1 (worst) to 5, of the feasible ones; 0: infeasible. */
  fifth: Uint8Array;
  metric: { column: string; name: string; goal: Goal };
  mark: Highlight | null;
}

/** The metric that colours the trials: one of the objectives and constrained metrics. */
function metricOf(sweep: Api.Sweep): Data["metric"] {
  const named = colourColumn.value.replace(/^metric:/, "");
  const name = judgedBy(sweep).find((n) => n === named) ?? sweep.metric.name;
  return { column: name === sweep.metric.name ? "value" : `metric:${name}`, name, goal: sweep.metrics.find((m) => m.name === name)?.goal ?? null };
}

/** Every k-th row, so that at most `most` are left. */
function thinned(rows: readonly number[], most: number): readonly number[] {
  if (rows.length <= most) return rows;
  const stride = rows.length / Math.max(1, most);
  return Array.from({ length: most }, (_, i) => rows[Math.floor(i * stride)]!);
}

/** What is drawn of the rows: highlighted ones last, so that they lie above. */
function layersOf({ rows, mark }: Data, most: number): { faint: readonly number[]; strong: readonly number[] } {
  if (!mark) return { faint: [], strong: thinned(rows, most) };
  const strong = thinned(rows.filter((r) => mark.rows[r] === 1), most);
  return { strong, faint: thinned(rows.filter((r) => mark.rows[r] !== 1), most - strong.length) };
}

export function ExplorePanel({ sweep, table }: { sweep: Api.Sweep; table: Table }) {
  const metric = metricOf(sweep);
  const shown = shownRows.value;
  const rows = useMemo(() => {
    const column = table.column(metric.column);
    const bad = table.column("infeasible");
    const completed = table.state.words.indexOf("completed");
    const drawn = new Uint8Array(table.n);
    for (let r = 0; r < table.n; r++) if (table.state.values[r] === completed && numberAt(column, r) !== null && (shown === null || shown[r] === 1)) drawn[r] = 1;
    const worstFirst = [...orderRows(table.n, drawn, column, metric.goal !== "maximize")];
    return [...worstFirst.filter((r) => numberAt(bad, r) === 1), ...worstFirst.filter((r) => numberAt(bad, r) !== 1)];
  }, [table, metric.column, metric.goal, shown]);
  const { infeasible, fifth } = useMemo(() => {
    const first = rows.findIndex((r) => numberAt(table.column("infeasible"), r) !== 1);
    const apart = first < 0 ? rows.length : first;
    const fifths = new Uint8Array(table.n);
    for (let i = apart; i < rows.length; i++) fifths[rows[i]!] = 1 + Math.floor((SHADES * (i - apart)) / (rows.length - apart));
    return { infeasible: apart, fifth: fifths };
  }, [table, rows]);
  const mark = currentTable.value === table ? highlight.value : null;
  const slices = route.value.query.get("explore") === "slices";
  const names = Object.keys(sweep.document.parameters ?? {});
  const marked = mark === null ? 0 : rows.filter((r) => mark.rows[r] === 1).length;
  if (names.length === 0 || rows.length === 0) return null;
  const data: Data = { sweep, table, rows, infeasible, fifth, metric, mark };
  const metrics = judgedBy(sweep);
  return (
    <section class="panel explore" aria-label="Parameters of all trials" data-drawn={rows.length} data-marked={marked}>
      <div class="bar">
        <h2>Parameters of all trials</h2>
        <Chips label="View" chosen={slices ? "slices" : "parallel"} options={[{ id: "parallel", label: "Parallel coordinates" }, { id: "slices", label: "Slices" }]} choose={(id) => choose({ explore: id === "slices" ? id : null })} />
        {metrics.length > 1 && <label class="toggle">Metric <select value={metric.name} onChange={(e) => setColour(e.currentTarget.value === sweep.metric.name ? null : `metric:${e.currentTarget.value}`)}>{metrics.map((m) => <option key={m} value={m}>{m}</option>)}</select></label>}
        <ul class="legend shade-legend"><li aria-hidden="true">{Array.from({ length: SHADES }, (_, i) => <i key={i} style={{ background: `var(--shade-${i + 1})` }} />)}</li><li>worst to best fifth by {metric.name}</li>{data.infeasible > 0 && <li class="l-infeasible">infeasible</li>}</ul>
        <span class="grow" />
        <span role="status" class="faint">{mark ? <><b data-testid="marked">{count(marked)}</b> of {count(rows.length)} highlighted</> : `${count(rows.length)} completed`}</span>
        {mark && <button type="button" class="quiet" onClick={clearSelection}>Clear</button>}
      </div>
      {slices ? <Slices data={data} names={names} /> : <Parallel data={data} names={names} />}
      <Ranges data={data} names={names} />
    </section>
  );
}

function csv({ table, rows, metric, mark }: Data, names: readonly string[]): string {
  const numbered = [...rows].sort((a, b) => a - b);
  function* lines() {
    for (const r of numbered) yield [table.number[r]!, ...names.map((n) => valueAt(table.column(`param:${n}`), r)), numberAt(table.column(metric.column), r), mark ? mark.rows[r]! : 1];
  }
  return csvOf(["number", ...names.map((n) => `param:${n}`), metric.name, "highlighted"], lines());
}

/** The colour of each row: by fifths from the worst to the best one, infeasible ones apart. */
function coloursOf({ fifth }: Data): (row: number) => string {
  const shades = [colour("--infeasible"), ...Array.from({ length: SHADES }, (_, i) => colour(`--shade-${i + 1}`))];
  return (row) => shades[fifth[row]!]!;
}

/* ---- parallel coordinates ---- */

const TOP = 34;
const BOTTOM = 40;
const NONE_BELOW = 24; // where lines of trials without a value pass below an axis
const HEIGHT = 380;
const SIDE = 70;

/** The columns in the order of the address; those that it does not name follow. */
function orderOf(names: readonly string[], metric: string): string[] {
  const all = [...names.map((n) => `param:${n}`), metric];
  let given: unknown = null;
  try {
    given = JSON.parse(route.value.query.get("axes") ?? "[]");
  } catch {
    // no list: the order of the document
  }
  const wanted = Array.isArray(given) ? given.filter((c): c is string => all.includes(c as string)) : [];
  return [...new Set([...wanted, ...all])];
}

function Parallel({ data, names }: { data: Data; names: readonly string[] }) {
  const { sweep, table, rows, metric, mark } = data;
  const order = orderOf(names, metric.column);
  const scales = useMemo(() => order.flatMap((c) => {
    const column = table.column(c);
    return column ? [scaleOf(column, c === metric.column ? metric.name : c.slice(6), rows, parameterOf(sweep, c), c === metric.column ? metric.goal : null)] : [];
  }), [table, rows, order.join("\n"), metric.name]);
  const ranges = brushes.value;
  const layers = layersOf(data, MOST_LINES);
  const draw = useMemo(() => (s: Surface) => drawParallel(s, data, scales, layers, ranges), [scales, rows, mark, ranges]);
  const [drag, setDrag] = useState<{ axis: number; from: number; to: number } | null>(null);
  const move = (column: string, by: number) => {
    const next = [...order];
    const at = next.indexOf(column);
    const to = Math.min(next.length - 1, Math.max(0, at + by));
    next.splice(at, 1);
    next.splice(to, 0, column);
    choose({ axes: JSON.stringify(next) });
  };
  const point = (e: PointerEvent, x: number, y: number, width: number) => {
    const place = Math.min(1, Math.max(0, 1 - (y - TOP) / (HEIGHT - TOP - BOTTOM)));
    if (e.type === "pointerdown") {
      const axis = Math.round(((x - SIDE) / Math.max(1, width - 2 * SIDE)) * Math.max(1, scales.length - 1));
      if (axis < 0 || axis >= scales.length || Math.abs(xOf(axis, scales.length, width) - x) > 24) return;
      (e.currentTarget as Element).setPointerCapture(e.pointerId);
      setDrag({ axis, from: place, to: place });
    } else if (drag && e.type === "pointermove") setDrag({ ...drag, to: place });
    else if (drag && e.type === "pointerup") {
      const scale = scales[drag.axis];
      setDrag(null);
      if (scale) brush(scale.column.name, rangeBetween(scale, Math.min(drag.from, place), Math.max(drag.from, place)));
    }
  };
  const hidden = rows.length - layers.faint.length - layers.strong.length;
  const label = `Parallel coordinates of ${count(rows.length)} completed trials over ${scales.map((s) => s.label).join(", ")}; coloured by ${metric.name}. The ranges below choose trials.`;
  return (
    <>
      <Figure class="parallel" label={label} height={HEIGHT} draw={draw} file={`${sweep.id}-parallel`} csv={() => csv(data, names)} onPointer={point}>
        {scales.map((s, i) => (
          <button key={s.column.name} type="button" class="axis-name" style={{ left: `calc(${SIDE}px + (100% - ${2 * SIDE}px) * ${scales.length > 1 ? i / (scales.length - 1) : 0.5})` }} title={`${s.label}: the arrow keys move the axis`}
            aria-label={`Axis ${s.label}, ${i + 1} of ${scales.length}; the left and right arrow move it`}
            onKeyDown={(e) => { if (e.key === "ArrowLeft" || e.key === "ArrowRight") { e.preventDefault(); move(s.column.name, e.key === "ArrowLeft" ? -1 : 1); } }}>{s.label}</button>
        ))}
        {drag && <i class="dragged" style={{ left: `calc(${SIDE}px + (100% - ${2 * SIDE}px) * ${scales.length > 1 ? drag.axis / (scales.length - 1) : 0.5} - 8px)`, top: `${TOP + (1 - Math.max(drag.from, drag.to)) * (HEIGHT - TOP - BOTTOM)}px`, height: `${Math.abs(drag.from - drag.to) * (HEIGHT - TOP - BOTTOM)}px` }} />}
      </Figure>
      <p class="note">Drag along an axis to choose a range.{hidden > 0 && ` ${count(rows.length - hidden)} of ${count(rows.length)} lines are drawn, evenly by ${metric.name}; counts and ranges are of all.`}</p>
    </>
  );
}

const xOf = (axis: number, axes: number, width: number) => (axes > 1 ? SIDE + ((width - 2 * SIDE) * axis) / (axes - 1) : width / 2);

/** The part of an axis between two places; null: it is too small, a click. */
function rangeBetween(scale: Scale, low: number, high: number): Range | null {
  if (high - low < 0.01) return null;
  if (scale.column.kind === "number") return { min: low <= 0 ? null : scale.valueAt(low), max: high >= 1 ? null : scale.valueAt(high) };
  const column = scale.column;
  const inside = column.words.filter((w) => { const p = placeOfWord(scale, w); return p >= low && p <= high; });
  return inside.length === 0 ? null : { words: inside };
}

function placeOfWord(scale: Scale, word: string): number {
  if (scale.column.kind !== "words") return NaN;
  const row = scale.column.values.indexOf(scale.column.words.indexOf(word));
  return row < 0 ? NaN : scale.at(row);
}

function drawParallel(s: Surface, data: Data, scales: readonly Scale[], layers: ReturnType<typeof layersOf>, ranges: ReadonlyMap<string, Range>): void {
  const bottom = s.height - BOTTOM;
  const tall = bottom - TOP;
  const xs = scales.map((_, i) => xOf(i, scales.length, s.width));
  const yOf = (scale: Scale, row: number) => { const p = scale.at(row); return Number.isNaN(p) ? bottom + NONE_BELOW : bottom - p * tall; };
  const tone = coloursOf(data);
  for (const r of layers.faint) s.line(xs, scales.map((scale) => yOf(scale, r)), colour("--grid"), 1, 0.6);
  const opacity = Math.max(0.12, Math.min(0.75, 60 / Math.max(1, layers.strong.length)));
  for (const r of layers.strong) s.line(xs, scales.map((scale) => yOf(scale, r)), tone(r), 1.25, opacity);
  const [text, line] = [colour("--text-2"), colour("--text-2")];
  scales.forEach((scale, i) => {
    const x = xs[i]!;
    s.line([x, x], [TOP, bottom], line, 1, 1);
    const range = ranges.get(scale.column.name);
    if (range && "min" in range) {
      const [low, high] = [range.min === null ? 0 : scale.placeOf(range.min), range.max === null ? 1 : scale.placeOf(range.max)].map((p) => Math.min(1, Math.max(0, p))) as [number, number];
      s.box(x - 6, bottom - high * tall, 12, Math.max(2, (high - low) * tall), colour("--accent"), 0.3);
    } else if (range && "words" in range) for (const w of range.words) { const p = placeOfWord(scale, w); if (!Number.isNaN(p)) s.box(x - 6, bottom - p * tall - 6, 12, 12, colour("--accent"), 0.3); }
    for (const t of scale.ticks) {
      const y = bottom - t.place * tall;
      s.line([x - 4, x], [y, y], line, 1, 1);
      const label = t.label.length > 10 ? `${t.label.slice(0, 9)}…` : t.label;
      const wide = 6.2 * label.length;
      s.box(x - 8 - wide, y - 7, wide + 2, 14, colour("--panel"), 0.8);
      s.text(x - 7, y, label, text, "end");
    }
    if (data.rows.some((r) => Number.isNaN(scale.at(r)))) s.text(x - 7, bottom + NONE_BELOW, "none", text, "end");
    if (scale.beyond) s.text(x, bottom + 10, "far ones at the edge", text, "middle");
    s.text(x, 12, scale.label.length > 18 ? `${scale.label.slice(0, 17)}…` : scale.label, colour("--text"), "middle");
  });
}

/* ---- slices ---- */

const SLICE_HEIGHT = 190;
const PAD = { left: 52, right: 10, top: 10, bottom: 34 };
const REACH_PX = 12;

function Slices({ data, names }: { data: Data; names: readonly string[] }) {
  const most = Math.max(1, Math.floor(MOST_DOTS / names.length));
  const all = data.rows.length;
  return (
    <>
      <div class="slices">{names.map((n) => <Slice key={n} data={data} name={n} most={most} names={names} />)}</div>
      {all > most && <p class="note">{count(most)} of {count(all)} trials are drawn in each, evenly by {data.metric.name}; counts and ranges are of all.</p>}
    </>
  );
}

function Slice({ data, name, most, names }: { data: Data; name: string; most: number; names: readonly string[] }) {
  const { sweep, table, rows, metric, mark } = data;
  const [under, setUnder] = useState<number | null>(null);
  const column = table.column(`param:${name}`);
  const values = table.column(metric.column);
  const scales = useMemo(() => (column && values ? { x: scaleOf(column, name, rows, parameterOf(sweep, column.name), null), y: scaleOf(values, metric.name, rows, undefined, metric.goal) } : null), [table, rows, name, metric.name]);
  const layers = layersOf(data, most);
  const draw = useMemo(() => (s: Surface) => { if (scales) drawSlice(s, data, scales.x, scales.y, layers); }, [scales, mark, rows]);
  if (!scales || !column) return null;
  const active = rows.filter((r) => !Number.isNaN(scales.x.at(r))).length;
  const point = (e: PointerEvent, x: number, y: number, width: number) => {
    if (e.type === "pointerleave") return setUnder(null);
    let [found, least]: [number | null, number] = [null, REACH_PX ** 2];
    for (const r of rows) {
      const far = (PAD.left + scales.x.at(r) * (width - PAD.left - PAD.right) - x) ** 2 + (SLICE_HEIGHT - PAD.bottom - scales.y.at(r) * (SLICE_HEIGHT - PAD.top - PAD.bottom) - y) ** 2;
      if (far < least) [found, least] = [r, far];
    }
    setUnder(found);
    if (e.type === "pointerup" && found !== null) go(["sweeps", sweep.id, "trials", table.number[found]!]);
    return undefined;
  };
  const said = under === null ? `${count(active)} trials` : `#${table.number[under]}: ${name} ${show(valueAt(column, under))}, ${metric.name} ${sig(numberAt(values, under))}`;
  return (
    <figure>
      <figcaption><b>{name}</b><span class="faint">{said}</span></figcaption>
      <Figure label={`${metric.name} against ${name} of ${count(active)} completed trials`} height={SLICE_HEIGHT} draw={draw} file={`${sweep.id}-slice-${name.replace(/[^\w.-]+/g, "_")}`} csv={() => csv(data, names)} onPointer={point} />
    </figure>
  );
}

const show = (v: number | string | null) => (typeof v === "number" ? sig(v) : v ?? "none");

function drawSlice(s: Surface, data: Data, x: Scale, y: Scale, layers: ReturnType<typeof layersOf>): void {
  const [right, bottom] = [s.width - PAD.right, s.height - PAD.bottom];
  const px = (p: number) => PAD.left + p * (right - PAD.left);
  const py = (p: number) => bottom - p * (bottom - PAD.top);
  const [grid, text] = [colour("--grid"), colour("--text-2")];
  for (const t of y.ticks) {
    s.line([PAD.left, right], [py(t.place), py(t.place)], grid, 1, 1);
    s.text(PAD.left - 6, py(t.place), t.label, text, "end");
  }
  const room = Math.max(1, Math.floor((right - PAD.left) / 52));
  const every = Math.ceil(x.ticks.length / room);
  x.ticks.forEach((t, i) => {
    s.line([px(t.place), px(t.place)], [PAD.top, bottom], grid, 1, 1);
    if (i % every === 0) s.text(px(t.place), bottom + 10, t.label.length > 9 ? `${t.label.slice(0, 8)}…` : t.label, text, "middle");
  });
  s.text((PAD.left + right) / 2, bottom + 25, `${x.label}${x.log ? " (log)" : ""}`, text, "middle");
  const tone = coloursOf(data);
  // Trials with the same word would hide each other: they are spread by their place in the order.
  const spread = (r: number) => (x.column.kind === "words" ? (((r * 0.618034) % 1) - 0.5) * Math.min(24, (right - PAD.left) / x.ticks.length / 2) : 0);
  if (y.beyond) s.text(right, PAD.top, "far ones at the edge", text, "end");
  const dot = (r: number, fill: string, alpha: number) => { const p = x.at(r); if (!Number.isNaN(p)) s.dot(px(p) + spread(r), py(y.at(r)), 2.5, fill, alpha); };
  for (const r of layers.faint) dot(r, colour("--point-faint"), 0.35);
  for (const r of layers.strong) dot(r, tone(r), 0.85);
}

/* ---- ranges, for the keyboard and exact values ---- */

function Ranges({ data, names }: { data: Data; names: readonly string[] }) {
  const { table, metric, sweep, rows, mark } = data;
  const columns = [...names.map((n) => [`param:${n}`, n] as const), [metric.column, metric.name] as const];
  const best = mark ? rows.filter((r) => mark.rows[r] === 1).slice(-20).reverse() : [];
  return (
    <details class="ranges">
      <summary>Ranges{brushes.value.size > 0 && ` (${brushes.value.size})`}</summary>
      <div class="range-list">
        {columns.map(([id, label]) => {
          const column = table.column(id);
          const range = brushes.value.get(id);
          if (column === undefined) return null;
          if (column.kind === "words") {
            const chosen = range && "words" in range ? range.words : [];
            return (
              <label key={id}><span>{label}</span>
                <select multiple size={Math.min(4, Math.max(2, column.words.length))} aria-label={`${label}: one of`} onChange={(e) => { const words = [...e.currentTarget.selectedOptions].map((o) => o.value); brush(id, words.length > 0 ? { words } : null); }}>
                  {[...column.words].sort().map((w) => <option key={w} value={w} selected={chosen.includes(w)}>{w}</option>)}
                </select>
              </label>
            );
          }
          const [min, max] = range && "min" in range ? [range.min, range.max] : [null, null];
          const set = (low: string, high: string) => {
            const [a, b] = [low.trim() === "" ? null : Number(low), high.trim() === "" ? null : Number(high)];
            if (Number.isNaN(a) || Number.isNaN(b)) return;
            brush(id, a === null && b === null ? null : { min: a, max: b });
          };
          return (
            <div key={id} class="range"><span>{label}</span>
              <input type="text" inputMode="decimal" aria-label={`${label}, from`} placeholder="from" value={min === null ? "" : sig(min, 6)} onChange={(e) => set(e.currentTarget.value, max === null ? "" : String(max))} />
              <input type="text" inputMode="decimal" aria-label={`${label}, to`} placeholder="to" value={max === null ? "" : sig(max, 6)} onChange={(e) => set(min === null ? "" : String(min), e.currentTarget.value)} />
            </div>
          );
        })}
      </div>
      {best.length > 0 && <p class="note">Highlighted, best first: {best.map((r, i) => <>{i > 0 && ", "}<a key={r} href={href(["sweeps", sweep.id, "trials", table.number[r]!])}>#{table.number[r]}</a> ({sig(numberAt(table.column(metric.column), r))})</>)}{rows.filter((r) => mark?.rows[r] === 1).length > best.length ? " …" : ""}</p>}
    </details>
  );
}
