/* Sweeps side by side: the best so far of each against trials, time and steps, and the distribution of
 * their values. Sweeps that differ in their seeds only are one group with an interval. */
import { useMemo } from "preact/hooks";
import type * as Api from "../api/types";
import { bandOf, quantile, type Band, type Summary } from "../data/summary";
import { count, duration, sig } from "../format";
import { ComparedSweepsModel, groupKey, MOST_SWEEPS, type ComparedSweep } from "../live/compared_sweeps";
import { useModel } from "../live/model";
import { SweepsModel } from "../live/sweeps";
import { csvOf } from "../parts/csv";
import { Figure } from "../parts/figure";
import { drawFrame, frameOf } from "../parts/frame";
import { edgeOf } from "../parts/history";
import { axisBetween, placeOf } from "../parts/scale_of";
import { Chips, Empty, Loading, State, Toggle } from "../parts/small";
import type { Surface } from "../parts/surface";
import { choose, href, route } from "../route";
import { colour } from "../theme";

const COLOURS = 6; // --series-1 to --series-6 of the style sheet
const HEIGHT = 320;
const PLACES = 240; // along the axis, where the runs of a group are compared

type Across = "trials" | "seconds" | "steps";
const ACROSS: { id: Across; label: string }[] = [{ id: "trials", label: "Trials" }, { id: "seconds", label: "Time" }, { id: "steps", label: "Steps" }];
const NAMES: Record<Across, string> = { trials: "trials that ended", seconds: "seconds since the first trial began", steps: "steps of all trials" };

interface Group {
  name: string;
  runs: readonly ComparedSweep[];
}

const sweepsOf = (text: string) => [...new Set(text.split(",").map((s) => s.trim()).filter((s) => s !== ""))].slice(0, MOST_SWEEPS);

export function CompareSweepsView() {
  const asked = route.value.query.get("sweeps") ?? "";
  const metric = route.value.query.get("metric");
  const ids = useMemo(() => sweepsOf(asked), [asked]);
  return (
    <main>
      <div class="head"><nav aria-label="Where this is"><a href={href(["sweeps"])}>Sweeps</a><span aria-hidden="true">/</span></nav><h1>Compare sweeps</h1></div>
      <Chosen ids={ids} />
      {ids.length === 0 ? <Empty title="No sweep is chosen"><p>Add sweeps above, or select them in the list of sweeps.</p></Empty> : <Comparison key={`${ids.join()} ${metric}`} ids={ids} metric={metric} />}
    </main>
  );
}

/** The sweeps that are compared, and a field that adds one. */
function Chosen({ ids }: { ids: readonly string[] }) {
  const model = useModel(() => new SweepsModel(), "sweeps to choose");
  const others = (model.sweeps.value ?? []).map((s) => s.id).filter((id) => !ids.includes(id));
  const set = (next: readonly string[]) => choose({ sweeps: next.length === 0 ? null : next.join(",") });
  const add = (input: HTMLInputElement) => {
    if (!others.includes(input.value)) return;
    set([...ids, input.value]);
    input.value = "";
  };
  return (
    <div class="bar chosen" role="group" aria-label="Compared sweeps">
      {ids.map((id) => <span key={id} class="picked"><a href={href(["sweeps", id])}>{id}</a><button type="button" class="quiet" aria-label={`Leave out ${id}`} onClick={() => set(ids.filter((o) => o !== id))}>×</button></span>)}
      {ids.length < MOST_SWEEPS && <label class="toggle">Add <input type="search" list="other-sweeps" placeholder="name of a sweep" onInput={(e) => add(e.currentTarget)} onChange={(e) => add(e.currentTarget)} /></label>}
      <datalist id="other-sweeps">{others.map((id) => <option key={id} value={id} />)}</datalist>
    </div>
  );
}

function groupsOf(sweeps: readonly ComparedSweep[]): Group[] {
  const groups = new Map<string, ComparedSweep[]>();
  for (const s of sweeps) {
    const key = groupKey(s.sweep.document);
    groups.set(key, [...(groups.get(key) ?? []), s]);
  }
  return [...groups.values()].map((runs) => ({ name: runs[0]!.sweep.id, runs }));
}

const seedsOf = (g: Group) => (g.runs.length > 1 ? `${g.name} (${g.runs.length} seeds)` : g.name);

function Comparison({ ids, metric }: { ids: readonly string[]; metric: string | null }) {
  const model = useModel(() => new ComparedSweepsModel(ids, metric), `compare ${ids.join()} ${metric}`);
  const all = model.sweeps.value;
  const groups = useMemo(() => groupsOf((all ?? []).filter((s) => s.summary.completed > 0)), [all]);
  const missing = model.missing.value;
  const objectives = [...new Map((all ?? []).flatMap((s) => s.sweep.metrics).map((m) => [m.name, m])).values()];
  const names = [...new Set((all ?? []).map((s) => s.sweep.metric.name))];
  const shown = metric ?? (names.length > 1 ? "first objective of each" : names[0] ?? "");
  const goal = objectives.find((m) => m.name === (metric ?? names[0]))?.goal ?? "minimize";
  return (
    <Loading of={model.refresher} ready={all !== null}>
      {missing.length > 0 && <p class="stale" role="status">Not there: {missing.join(", ")}.</p>}
      {objectives.length > 1 && <label class="toggle">Metric <select value={metric ?? ""} onChange={(e) => choose({ metric: e.currentTarget.value || null })}><option value="">the first objective of each</option>{objectives.map((m) => <option key={m.name} value={m.name}>{m.name}</option>)}</select></label>}
      {metric === null && names.length > 1 && <p class="stale" role="status">Their first objectives differ: {names.join(", ")}. Choose a metric that they share.</p>}
      {all !== null && all.length > 0 && (
        <>
          {groups.length > 0 && <div class="columns even"><BestSoFar groups={groups} metric={shown} goal={goal} /><Distribution groups={groups} metric={shown} /></div>}
          <SweepsTable all={all} groups={groups} />
        </>
      )}
    </Loading>
  );
}

function Legend({ groups }: { groups: readonly Group[] }) {
  return <ul class="legend swatches">{groups.map((g, i) => <li key={g.name}><i class={`swatch swatch-${(i % COLOURS) + 1}`} aria-hidden="true" />{seedsOf(g)}</li>)}</ul>;
}

function BestSoFar({ groups, metric, goal }: { groups: readonly Group[]; metric: string; goal: Api.Goal }) {
  const { query } = route.value;
  const hasSteps = groups.every((g) => g.runs.every((r) => r.summary.hasSteps));
  const across = ACROSS.find((a) => a.id === query.get("across") && (a.id !== "steps" || hasSteps))?.id ?? "trials";
  const [logX, logY] = [query.get("x") === "log", query.get("y") === "log"];
  const { bands, x, y } = useMemo(() => {
    const ends = groups.flatMap((g) => g.runs.map((r) => r.summary[across].at(-1) ?? 0));
    const first = Math.min(...groups.flatMap((g) => g.runs.map((r) => r.summary[across].find((v) => v > 0) ?? Infinity)));
    const ax = axisBetween(NAMES[across], logX ? Math.min(first, 1) || 1 : 0, Math.max(...ends), logX && Number.isFinite(first));
    const along = Array.from({ length: PLACES + 1 }, (_, i) => (ax.log ? ax.min * (ax.max / ax.min) ** (i / PLACES) : ax.min + (i / PLACES) * (ax.max - ax.min)));
    const places = across === "seconds" ? along : [...new Set(along.map(Math.round))]; // there are no parts of trials and steps
    const made = groups.map((g) => bandOf(g.runs.map((r) => r.summary), across, places));
    const values = made.flatMap((b) => [...b.low, ...b.high]).sort((a, b) => a - b);
    // The first results may be far from all later ones: the axis begins at their better nine tenths.
    const [low, high] = logY ? [values[0] ?? 0, values.at(-1) ?? 1] : goal === "minimize" ? [values[0] ?? 0, quantile(values, 0.98)] : [quantile(values, 0.02), values.at(-1) ?? 1];
    return { bands: made, x: ax, y: axisBetween(`best ${metric}`, low, high, logY && low > 0) };
  }, [groups, across, logX, logY, metric, goal]);
  const ends = groups.map((g) => `${seedsOf(g)} ${sig(quantile(g.runs.map((r) => r.summary.best ?? NaN).sort((a, b) => a - b), 0.5))}`).join(", ");
  const csv = () => csvOf(["group", x.label, "low", "median", "high"], bands.flatMap((b, i) => b.x.map((v, j) => [seedsOf(groups[i]!), v, b.low[j]!, b.mid[j]!, b.high[j]!])));
  return (
    <section class="panel" aria-label="Best so far" data-groups={groups.length}>
      <div class="bar"><h2>Best so far <small>{metric}</small></h2><Chips label="Across" chosen={across} options={ACROSS.filter((a) => a.id !== "steps" || hasSteps)} choose={(id) => choose({ across: id === "trials" ? null : id })} /><span class="grow" /><Toggle label="Log x" on={logX} change={(on) => choose({ x: on ? "log" : null })} /><Toggle label="Log y" on={logY} change={(on) => choose({ y: on ? "log" : null })} /></div>
      <Legend groups={groups} />
      <Figure label={`Best ${metric} so far against ${x.label}; at the end: ${ends}. Bands are from a tenth to nine tenths of the seeds.`} height={HEIGHT} draw={(s) => drawBands(s, bands, x, y)} file="sweeps-best" csv={csv} />
      {groups.some((g) => g.runs.length > 1) && <p class="note">Lines are medians over the seeds, bands reach from a tenth to nine tenths of them.</p>}
    </section>
  );
}

function drawBands(s: Surface, bands: readonly Band[], x: ReturnType<typeof axisBetween>, y: ReturnType<typeof axisBetween>): void {
  const f = frameOf(s.width, s.height);
  drawFrame(s, f, x, y);
  s.clip(f);
  bands.forEach((b, i) => {
    const stroke = colour(`--series-${(i % COLOURS) + 1}`);
    const [xs, ys]: [number[], number[][]] = [[], [[], [], []]];
    b.x.forEach((v, j) => { // steps: the best holds until it is beaten
      for (const at of j === 0 ? [v] : [v, v]) xs.push(f.px(placeOf(x, at)));
      [b.low, b.mid, b.high].forEach((list, k) => { if (j > 0) ys[k]!.push(f.py(placeOf(y, list[j - 1]!))); ys[k]!.push(f.py(placeOf(y, list[j]!))); });
    });
    s.area(xs, ys[0]!, ys[2]!, stroke, 0.16);
    s.line(xs, ys[1]!, stroke, i < COLOURS ? 2 : 1.25, 1);
  });
  s.clip(null);
}

function Distribution({ groups, metric }: { groups: readonly Group[]; metric: string }) {
  const log = route.value.query.get("values") === "log";
  const runs = groups.flatMap((g, i) => g.runs.map((r) => ({ ...r, group: i })));
  const { x, y, isCut } = useMemo(() => {
    const all = runs.flatMap((r) => [...r.summary.values]).sort((a, b) => a - b);
    const [low, high] = [all[0] ?? 0, all.at(-1) ?? 1];
    // A few diverged trials would flatten all others.
    const isLog = log && low > 0;
    const [heights, valueAt] = [isLog ? all.map(Math.log) : all, isLog ? Math.exp : Number];
    const [near, far] = [Math.max(low, valueAt(-edgeOf(heights, -1))), Math.min(high, valueAt(edgeOf(heights, 1)))];
    return { isCut: near > low || far < high, x: axisBetween(metric, near, far, isLog), y: axisBetween("share of the completed trials", 0, 1, false) };
  }, [groups, log, metric]);
  const draw = (s: Surface) => {
    const f = frameOf(s.width, s.height);
    drawFrame(s, f, x, y);
    s.clip(f);
    for (const { summary, group } of runs) drawSteps(s, summary, f, x, colour(`--series-${(group % COLOURS) + 1}`), groups[group]!.runs.length > 1 ? 1 : 2);
    s.clip(null);
  };
  const csv = () => csvOf(["sweep", metric, "share"], runs.flatMap(({ sweep, summary: { values } }) => [...values].map((v, i) => [sweep.id, v, (i + 1) / values.length])));
  const medians = runs.map((r) => `${r.sweep.id} ${sig(quantile([...r.summary.values], 0.5))}`).join(", ");
  return (
    <section class="panel" aria-label="Distribution" data-sweeps={runs.length}>
      <div class="bar"><h2>Empirical distribution <small>{metric}</small></h2><span class="grow" /><Toggle label="Log values" on={log} change={(on) => choose({ values: on ? "log" : null })} /></div>
      <Legend groups={groups} />
      <Figure label={`Share of the completed trials with at most this ${metric}; medians: ${medians}`} height={HEIGHT} draw={draw} file="sweeps-distribution" csv={csv} />
      {isCut && <p class="note">Values far from the rest lie beyond the edge.</p>}
    </section>
  );
}

function drawSteps(s: Surface, { values }: Summary, f: ReturnType<typeof frameOf>, x: ReturnType<typeof axisBetween>, stroke: string, width: number): void {
  const [xs, ys]: [number[], number[]] = [[], []];
  values.forEach((v, i) => {
    const at = f.px(placeOf(x, v));
    xs.push(at, at);
    ys.push(f.py(i / values.length), f.py((i + 1) / values.length));
  });
  xs.push(f.right);
  ys.push(f.py(1));
  s.line(xs, ys, stroke, width, 1);
}

function SweepsTable({ all, groups }: { all: readonly ComparedSweep[]; groups: readonly Group[] }) {
  return (
    <section class="panel" aria-label="Compared" data-sweeps={all.length}>
      <div class="bar"><h2>Sweeps</h2></div>
      <div class="scroll whole" tabIndex={0} role="region" aria-label="The compared sweeps">
        <table class="compared">
          <thead><tr><th scope="col">Sweep</th><th scope="col">State</th><th scope="col">Method</th><th scope="col">Seed</th><th scope="col" class="num">Ended</th><th scope="col" class="num">Completed</th><th scope="col" class="num">Best</th><th scope="col" class="num">Median</th><th scope="col" class="num">Time</th></tr></thead>
          <tbody>
            {all.map(({ sweep, summary }) => {
              const group = groups.findIndex((g) => g.runs.some((r) => r.sweep === sweep));
              return (
                <tr key={sweep.id}>
                  <th scope="row">{group >= 0 && <i class={`swatch swatch-${(group % COLOURS) + 1}`} aria-hidden="true" />}<a href={href(["sweeps", sweep.id])}>{sweep.id}</a></th>
                  <td><State state={sweep.state} /></td><td>{sweep.method}</td><td>{sweep.seed}</td>
                  <td class="num">{count(summary.ended)}</td><td class="num">{count(summary.completed)}</td>
                  <td class="num" title={String(summary.best ?? "")}><b>{sig(summary.best)}</b></td><td class="num">{summary.completed > 0 ? sig(quantile([...summary.values], 0.5)) : "–"}</td>
                  <td class="num">{duration(summary.seconds.length > 0 ? 1000 * summary.seconds.at(-1)! : null)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
