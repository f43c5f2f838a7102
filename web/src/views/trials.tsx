/* The table of a sweep's trials: any order, by state, as many as there are. */
import { useMemo } from "preact/hooks";
import type * as Api from "../api/types";
import { duration, param, sig, toNumber } from "../format";
import { Chips, State, TRIAL_STATES, took } from "../parts/small";
import { Table, type Column } from "../parts/table";
import { choose, go, href, route } from "../route";

function paramColumn([name, space]: [string, Record<string, unknown>]): Column<Api.Trial> {
  return {
    id: `param.${name}`, label: name, width: Math.min(20, Math.max(9, name.length + 2)), numeric: space.type !== "categorical",
    key: (t) => { const v = t.params[name]; return v === undefined ? null : typeof v === "number" ? v : String(v); },
    cell: (t) => <span title={t.params[name] === undefined ? "not active in this trial" : String(t.params[name])}>{param(t.params[name])}</span>,
  };
}

/** Reasons have a column when there are any. */
function columnsOf(sweep: Api.Sweep, reasons: boolean): Column<Api.Trial>[] {
  const time = (t: Api.Trial) => took(t.started_at, t.finished_at);
  const columns: Column<Api.Trial>[] = [
    { id: "number", label: "Trial", width: 6, numeric: true, key: (t) => t.number, cell: (t) => <a href={href(["sweeps", sweep.id, "trials", t.number])}>{t.number}</a> },
    { id: "state", label: "State", width: 11, key: (t) => TRIAL_STATES.indexOf(t.state), cell: (t) => <State state={t.state} /> },
    { id: "value", label: sweep.metric.name, width: Math.min(22, Math.max(11, sweep.metric.name.length + 2)), numeric: true, key: (t) => toNumber(t.value), cell: (t) => <b title={String(t.value ?? "")} class={t.state === "completed" ? "" : "unsure"}>{sig(toNumber(t.value))}</b> },
    ...Object.entries(sweep.document.parameters).map(paramColumn),
    { id: "duration", label: "Duration", width: 10, numeric: true, key: time, cell: (t) => duration(time(t)) },
    { id: "restarts", label: "Restarts", width: 9, numeric: true, key: (t) => t.restarts, cell: (t) => <span class={t.restarts > 0 ? "" : "faint"}>{t.restarts}</span> },
    { id: "runner", label: "Runner", width: 16, key: (t) => t.runner ?? null, cell: (t) => t.runner ?? "" },
  ];
  if (reasons) columns.push({ id: "reason", label: "Reason", width: 30, key: (t) => t.reason ?? null, cell: (t) => <span title={t.reason ?? ""}>{t.reason ?? ""}</span> });
  return columns;
}

export function TrialsPanel({ sweep, trials, loaded }: { sweep: Api.Sweep; trials: readonly Api.Trial[]; loaded: boolean }) {
  const { query } = route.value;
  const state = query.get("state") ?? "all";
  const order = { column: query.get("sort") ?? "number", descending: query.get("order") === "desc" };
  const rows = useMemo(() => (state === "all" ? trials : trials.filter((t) => t.state === state)), [trials, state]);
  const reasons = useMemo(() => trials.some((t) => t.reason), [trials]);
  const columns = useMemo(() => columnsOf(sweep, reasons), [sweep.id, sweep.metric.name, reasons]);
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
        {!loaded && <span class="faint" role="status">Loading…</span>}
      </div>
      <Table label="Trials" columns={columns} rows={rows} rowKey={(t) => t.number} order={order} open={(t) => go(["sweeps", sweep.id, "trials", t.number])}
        rowClass={(t) => (t.number === sweep.best?.number ? "is-best" : "")}
        setOrder={(o) => choose({ sort: o.column, order: o.descending ? "desc" : "asc" })} empty={loaded ? (trials.length === 0 ? "No trials yet." : "No trial is in this state.") : ""} />
    </section>
  );
}
