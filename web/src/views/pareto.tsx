/* The front of a sweep with several objectives: the trials that no other beats in all of them. */
import { useMemo } from "preact/hooks";
import type * as Api from "../api/types";
import { formatNumbers } from "../data/numbers";
import { brushAll, brushText, clearSelection, filterText, pickedText } from "../data/selection";
import type { SweepTable } from "../data/sweep_table";
import { useJob } from "../data/use_job";
import { count, sig, toNumber } from "../format";
import { useSight, type LazyResource } from "../live/lazy_resource";
import { hasEnded } from "../live/sweep";
import { breaks, fullMetric, judgedBy, metricOf, valueColumn } from "../parts/objectives";
import { Scatter } from "../parts/scatter";
import { choose, go, href, route } from "../route";

export function ParetoPanel({ sweep, trials, pareto }: { sweep: Api.Sweep; trials: SweepTable; pareto: LazyResource<Api.Pareto> }) {
  const element = useSight<HTMLElement>(pareto);
  const now = pareto.value.value;
  const failed = pareto.refresher.error.value;
  const front = useMemo(() => formatNumbers(now?.items.map((t) => t.number) ?? []) ?? "", [now]);
  const [x, y] = axesOf(sweep);
  const axisOf = (m: Api.Objective) => ({ column: valueColumn(sweep, m.name), goal: m.goal });
  const input = { x: axisOf(x), y: axisOf(y), front, clip: route.value.query.get("far") !== "show", filter: filterText.value, brush: brushText.value, picked: pickedText.value };
  const { done, error } = useJob(trials, "plane", input, pareto.inSight.value);
  const plane = done?.output;
  const volume = toNumber(now?.hypervolume);
  return (
    <section class="panel" aria-label="Pareto" ref={element} data-front={now?.items.length ?? 0} data-points={plane?.count ?? 0} data-highlighted={plane?.highlighted ?? 0}>
      <div class="bar">
        <h2>Pareto front <small>{sweep.metrics.map((m) => `${m.name} (${m.goal})`).join(", ")}</small></h2>
        <ul class="legend">
          <li class="l-front">{count(now?.items.length ?? 0)} on the front</li><li class="l-beaten">beaten</li>
          {plane?.isInfeasible && <li class="l-infeasible">infeasible</li>}
          {typeof plane?.highlighted === "number" && <li class="l-marked">{count(plane.highlighted)} highlighted</li>}
        </ul>
        <span class="grow" />
        {sweep.metrics.length > 2 && <Axes sweep={sweep} x={x} y={y} />}
        {typeof plane?.highlighted === "number" && <button type="button" class="quiet" onClick={clearSelection}>Clear</button>}
        {volume !== null && <span class="faint" title={`In the metrics' own units, seen from ${now?.reference?.map((v) => sig(toNumber(v))).join(", ") ?? ""}`}>Hypervolume <b data-testid="hypervolume">{sig(volume)}</b></span>}
      </div>
      {failed !== null && <p class="stale" role="status">{now ? "Not up to date" : "Not known"}: {failed}</p>}
      {error !== null && <p class="stale" role="status">Not up to date: {error}</p>}
      <div class="split front">
        {plane && done && trials.loaded.value ? <Scatter sweep={sweep} table={done.table} plane={plane} x={x} y={y} csv={() => trials.run("planeCsv", { ...input, heads: [x.name, y.name] })}
          brush={(across, up) => brushAll([[input.x.column, across], [input.y.column, up]])} open={(n) => go(["sweeps", sweep.id, "trials", n])} /> : <p class="hint tall">{pareto.inSight.value && "Loading…"}</p>}
        <div class="front-place">{now && (now.items.length > 0 ? <Front sweep={sweep} items={now.items} /> : <p class="hint">No trial {hasEnded(sweep.state) ? "" : "has "}completed{sweep.constraints.length > 0 ? " and kept the constraints" : ""}{hasEnded(sweep.state) ? "" : " yet"}.</p>)}</div>
      </div>
    </section>
  );
}

/** The two objectives that are drawn: those in the address, else the first two. */
function axesOf(sweep: Api.Sweep): [Api.Objective, Api.Objective] {
  const { query } = route.value;
  const named = (key: string) => sweep.metrics.find((m) => m.name === query.get(key));
  const x = named("px") ?? sweep.metrics[0] ?? sweep.metric;
  const free = sweep.metrics.filter((m) => m.name !== x.name);
  return [x, free.find((m) => m.name === named("py")?.name) ?? free[0] ?? x];
}

function Axes({ sweep, x, y }: { sweep: Api.Sweep; x: Api.Objective; y: Api.Objective }) {
  const select = (label: string, key: string, chosen: string, others: readonly Api.Objective[]) => (
    <label class="toggle">{label} <select value={chosen} onChange={(e) => choose({ [key]: e.currentTarget.value })}>{others.map((m) => <option key={m.name} value={m.name}>{m.name}</option>)}</select></label>
  );
  return <span class="axes">{select("Across", "px", x.name, sweep.metrics)}{select("Up", "py", y.name, sweep.metrics.filter((m) => m.name !== x.name))}</span>;
}

/** The front as a list, ordered by the first objective, best first. */
function Front({ sweep, items }: { sweep: Api.Sweep; items: readonly Api.Trial[] }) {
  const names = judgedBy(sweep);
  const rows = useMemo(() => {
    const sign = sweep.metric.goal === "minimize" ? 1 : -1;
    return [...items].sort((a, b) => sign * ((metricOf(a, sweep.metric.name) ?? 0) - (metricOf(b, sweep.metric.name) ?? 0)));
  }, [items, sweep.metric.name]);
  return (
    <div class="scroll front-list" tabIndex={0} role="region" aria-label="Trials of the front">
      <table>
        <thead><tr><th scope="col" class="num">Trial</th>{names.map((n) => <th key={n} scope="col" class="num">{n}</th>)}</tr></thead>
        <tbody>
          {rows.map((t) => (
            <tr key={t.number}>
              <td class="num"><a href={href(["sweeps", sweep.id, "trials", t.number])}>#{t.number}</a></td>
              {names.map((n) => <td key={n} class={`num ${breaks(sweep, n, metricOf(t, n)) ? "bad" : ""}`} title={fullMetric(t, n)}>{sig(metricOf(t, n))}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
