/* The table of all trials of a sweep, in any order, filtered by state. */
import { useMemo } from "preact/hooks";
import type * as Api from "../api/types";
import { count, duration, own, param, sig, toNumber, valueText } from "../format";
import { hasEnded } from "../live/sweep";
import { boundsOf, breaks, fullMetric, isInfeasible, judgedBy, metricOf } from "../parts/objectives";
import { Chips, shortGroup, State, TRIAL_STATES, took } from "../parts/small";
import { leastOf, Table, type Column } from "../parts/table";
import { choose, go, href, route } from "../route";

/** The characters that the values of a parameter need; floats are shown with four digits. */
function valueWidth(space: Api.Parameter): number {
  const longest = (values: readonly unknown[]) => Math.min(16, Math.max(...values.map((v) => param(v as Api.Value).length)));
  switch (space.type) {
    case "int": return longest([space.min, space.max]);
    case "categorical": case "ordinal": return longest(space.values);
    case "constant": return longest([space.value]);
    case "bool": return 5;
    default: return 9;
  }
}

function paramColumn([name, space]: [string, Api.Parameter]): Column<Api.Trial> {
  return {
    id: `param.${name}`, label: name, width: Math.min(20, Math.max(9, name.length + 2)), least: Math.max(valueWidth(space), leastOf(name)), numeric: space.type !== "categorical",
    key: (t) => { const v = own(t.params, name); return v === undefined ? null : typeof v === "number" ? v : valueText(v); },
    cell: (t) => { const v = own(t.params, name); return <span title={v === undefined ? "not active in this trial" : valueText(v)}>{param(v)}</span>; },
  };
}

const metricWidth = (name: string) => Math.min(22, Math.max(11, name.length + 2));
const metricLeast = (name: string) => Math.max(9, leastOf(name));

/** The column of a metric besides the first objective: another objective or a constrained metric. */
function metricColumn(sweep: Api.Sweep, name: string): Column<Api.Trial> {
  const bounds = sweep.constraints.filter((c) => c.metric === name).map(boundsOf).join(", ");
  return {
    id: `metric.${name}`, label: name, title: bounds || name, width: metricWidth(name), least: metricLeast(name), numeric: true, key: (t) => metricOf(t, name),
    cell: (t) => <span title={`${fullMetric(t, name)}${breaks(sweep, name, metricOf(t, name)) ? `: ${bounds} must hold` : ""}`} class={breaks(sweep, name, metricOf(t, name)) ? "bad" : ""}>{sig(metricOf(t, name))}</span>,
  };
}

/** Yes or no; nothing for a trial without a result. */
const feasible: Column<Api.Trial> = {
  id: "feasible", label: "Feasible", title: "Does it keep the constraints of the sweep?", width: 9, key: (t) => (t.feasible === null || t.feasible === undefined ? null : Number(!t.feasible)),
  cell: (t) => (t.feasible ? "yes" : t.feasible === false ? <span class="mark">no</span> : ""),
};

/** "4 ranks" in the place of a runner, for a trial that ran with several; null: it did not, or has not begun. */
function ranksOf(sweep: Api.Sweep, t: Api.Trial): string | null {
  const ranks = sweep.document.resources?.ranks ?? 1;
  return ranks > 1 && t.started_at && !t.runner && !t.client ? `${count(ranks)} ranks` : null;
}

/** What some trial has: a column that would say the same of every trial is left out. */
interface Told {
  groups: boolean;
  restarts: boolean;
  origins: boolean;
  reasons: boolean;
}

function columnsOf(sweep: Api.Sweep, told: Told): Column<Api.Trial>[] {
  const time = (t: Api.Trial) => took(t.started_at, t.finished_at);
  const ranOn = (t: Api.Trial) => t.runner ?? t.client ?? ranksOf(sweep, t);
  const group: Column<Api.Trial> = {
    id: "group", label: "Group", title: "Trials of a group train in one process", width: 11, least: 6, key: (t) => t.group ?? null,
    cell: (t) => t.group && <a href={href(["sweeps", sweep.id], { group: t.group })} title={`Only group ${t.group}: ${t.shape ?? ""}`}>{shortGroup(t.group, sweep.id)}</a>,
  };
  const columns: Column<Api.Trial>[] = [
    { id: "number", label: "Trial", width: 6, numeric: true, key: (t) => t.number, cell: (t) => <a href={href(["sweeps", sweep.id, "trials", t.number])}>{t.number}</a> },
    { id: "state", label: "State", width: 11, key: (t) => TRIAL_STATES.indexOf(t.state), cell: (t) => <State state={t.state} /> },
    { id: "value", label: sweep.metric.name, width: metricWidth(sweep.metric.name), least: metricLeast(sweep.metric.name), numeric: true, key: (t) => toNumber(t.value), cell: (t) => <b title={String(t.value ?? "")} class={t.state === "completed" && !isInfeasible(t) ? "" : "unsure"}>{sig(toNumber(t.value))}</b> },
    ...judgedBy(sweep).filter((name) => name !== sweep.metric.name).map((name) => metricColumn(sweep, name)),
    ...(sweep.constraints.length > 0 ? [feasible] : []),
    ...(told.groups ? [group] : []),
    ...Object.entries(sweep.document.parameters).map(paramColumn),
    { id: "duration", label: "Duration", width: 10, least: 9, numeric: true, key: time, cell: (t) => duration(time(t)) },
  ];
  if (told.restarts) columns.push({ id: "restarts", label: "Restarts", width: 9, numeric: true, key: (t) => t.restarts, cell: (t) => <span class={t.restarts > 0 ? "" : "faint"}>{t.restarts}</span> });
  if (told.origins) columns.push({ id: "origin", label: "Origin", title: "Where the parameters come from", width: 10, least: 9, key: (t) => t.origin, cell: (t) => <span class={t.origin === "suggested" ? "faint" : ""}>{t.origin}</span> });
  columns.push({ id: "runner", label: sweep.for_runners ? "Runner" : "Client", width: 16, least: 7, key: ranOn, cell: (t) => <span title={t.client ? `client ${t.client}` : t.runner ?? (ranksOf(sweep, t) === null ? undefined : "its ranks ran on several runners: the page of the trial has them")}>{ranOn(t)}</span> });
  if (told.reasons) columns.push({ id: "reason", label: "Reason", width: 30, least: 8, key: (t) => t.reason ?? null, cell: (t) => <span title={t.reason ?? ""}>{t.reason ?? ""}</span> });
  return columns;
}

export function TrialsPanel({ sweep, trials, loaded }: { sweep: Api.Sweep; trials: readonly Api.Trial[]; loaded: boolean }) {
  const { query } = route.value;
  const state = query.get("state") ?? "all";
  const order = { column: query.get("sort") ?? "number", descending: query.get("order") === "desc" };
  const group = query.get("group");
  const rows = useMemo(() => trials.filter((t) => (state === "all" || t.state === state) && (group === null || t.group === group)), [trials, state, group]);
  const told = useMemo((): Told => ({
    groups: trials.some((t) => t.group), restarts: trials.some((t) => t.restarts > 0), origins: trials.some((t) => t.origin !== "suggested"), reasons: trials.some((t) => t.reason),
  }), [trials]);
  const columns = useMemo(() => columnsOf(sweep, told), [sweep.id, sweep.metric.name, sweep.constraints.length, ...Object.values(told)]);
  const counts = useMemo(() => {
    const found = new Map<string, number>();
    for (const t of trials) found.set(t.state, (found.get(t.state) ?? 0) + 1);
    return found;
  }, [trials]);
  const options = [{ id: "all", label: "All", count: trials.length },
    ...TRIAL_STATES.filter((s) => (counts.get(s) ?? 0) > 0 || s === state).map((s) => ({ id: s as string, label: s, count: counts.get(s) ?? 0 }))];
  return (
    <section class="panel flush">
      <div class="bar">
        <h2>Trials</h2>
        <Chips label="Trials by state" chosen={state} options={options} choose={(s) => choose({ state: s === "all" ? null : s })} />
        {group !== null && <button type="button" title="Show the trials of all groups" onClick={() => choose({ group: null })}>Group {shortGroup(group, sweep.id)} ×</button>}
        {!loaded && <span class="faint" role="status">Loading…</span>}
      </div>
      <Table label="Trials" columns={columns} rows={rows} rowKey={(t) => t.number} order={order} open={(t) => go(["sweeps", sweep.id, "trials", t.number])}
        rowClass={(t) => (t.number === sweep.best?.number ? "is-best" : isInfeasible(t) ? "infeasible" : "")}
        setOrder={(o) => choose({ sort: o.column, order: o.descending ? "desc" : "asc" })} empty={loaded ? (trials.length === 0 ? (hasEnded(sweep.state) ? "No trials." : "No trials yet.") : (group === null ? "No trial is in this state." : "No such trial is in this group.")) : ""} />
    </section>
  );
}
