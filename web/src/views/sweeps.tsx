/* All sweeps: the state, progress and best result of each. */
import { useMemo } from "preact/hooks";
import type * as Api from "../api/types";
import { count, duration, sig, toNumber } from "../format";
import { useModel } from "../live/model";
import { hasEnded } from "../live/sweep";
import { SweepsModel } from "../live/sweeps";
import { Chips, Empty, Loading, Progress, Since, State, took } from "../parts/small";
import { Table, type Column } from "../parts/table";
import { choose, go, href, route } from "../route";

const STATES: Api.SweepState[] = ["running", "paused", "finishing", "completed", "failed", "cancelled"];

const ended = (s: Api.SweepSummary) => s.counts.completed + s.counts.pruned + s.counts.failed + s.counts.cancelled;
const time = (text: string | null | undefined) => (text ? Date.parse(text) : null);

const endedText = (s: Api.SweepSummary) => `${count(ended(s))} / ${count(s.planned_trials)}`;

/** The sweeps that are selected for a comparison. */
const chosenNow = (): string[] => (route.value.query.get("sweeps") ?? "").split(",").filter((id) => id !== "");

function select(id: string, on: boolean): void {
  const next = [...chosenNow().filter((other) => other !== id), ...(on ? [id] : [])];
  choose({ sweeps: next.length === 0 ? null : next.join(",") });
}

/** `endedWidth`: the characters of the longest text of that column, which is never cut. */
const columnsOf = (endedWidth: number): Column<Api.SweepSummary>[] => [
  { id: "name", label: "Sweep", width: 28, least: 16, key: (s) => s.id, cell: (s) => <><input type="checkbox" aria-label={`Select sweep ${s.id}`} checked={chosenNow().includes(s.id)} onChange={(e) => select(s.id, e.currentTarget.checked)} /><a href={href(["sweeps", s.id])} title={s.id}>{s.id}</a></> },
  { id: "state", label: "State", width: 11, key: (s) => STATES.indexOf(s.state), cell: (s) => <State state={s.state} /> },
  { id: "progress", label: "Progress", width: 20, least: 10, key: (s) => ended(s) / Math.max(1, s.planned_trials), cell: (s) => <Progress counts={s.counts} planned={s.planned_trials} /> },
  { id: "trials", label: "Ended", width: Math.max(12, endedWidth), least: Math.max(9, endedWidth), numeric: true, key: ended, cell: endedText },
  { id: "failed", label: "Failed", width: 6, numeric: true, key: (s) => s.counts.failed, tone: (s) => (s.counts.failed > 0 ? "bad" : "faint"), cell: (s) => count(s.counts.failed) },
  { id: "running", label: "Running", width: 9, numeric: true, key: (s) => s.counts.running, tone: (s) => s.counts.running === 0 && "faint", cell: (s) => count(s.counts.running) },
  { id: "best", label: "Best", width: 10, numeric: true, key: (s) => toNumber(s.best?.value), tip: (s) => String(s.best?.value ?? ""), tone: () => "sure", cell: (s) => sig(toNumber(s.best?.value)) },
  { id: "metric", label: "Metric", width: 18, least: 11, key: (s) => s.metric.name, cell: (s) => <span title={`${s.metric.goal} ${s.metric.name}`}>{s.metric.goal === "minimize" ? "↓" : "↑"} {s.metric.name}</span> },
  { id: "method", label: "Method", width: 8, key: (s) => s.method, cell: (s) => s.method },
  { id: "duration", label: "Duration", width: 11, numeric: true, key: (s) => took(s.started_at, s.finished_at), cell: (s) => duration(took(s.started_at, s.finished_at)) },
  { id: "created", label: "Created", width: 12, least: 10, key: (s) => time(s.created_at), cell: (s) => <Since time={s.created_at} /> },
];

export function SweepsView() {
  const model = useModel(() => new SweepsModel(), "sweeps");
  const { query } = route.value;
  const state = query.get("state") ?? "all";
  const text = (query.get("find") ?? "").toLowerCase();
  const order = { column: query.get("sort") ?? "created", descending: (query.get("order") ?? "desc") === "desc" };
  const all = model.sweeps.value;
  const rows = useMemo(() => (all ?? []).filter((s) => (state === "all" || s.state === state) && (s.id.toLowerCase().includes(text) || s.tags.some((tag) => tag.toLowerCase().includes(text)))), [all, state, text]);
  const endedWidth = useMemo(() => Math.max(0, ...rows.map((s) => endedText(s).length)), [rows]);
  const columns = useMemo(() => columnsOf(endedWidth), [endedWidth]);
  const running = (all ?? []).filter((s) => !hasEnded(s.state)).length;
  const options = [{ id: "all", label: "All", count: all?.length ?? 0 }, ...STATES.map((s) => ({ id: s as string, label: s, count: (all ?? []).filter((x) => x.state === s).length })).filter((o) => o.count > 0 || o.id === state)];
  return (
    <main>
      <div class="head">
        <h1>Sweeps</h1>
        <span class="faint">{all === null ? "" : running === 0 ? "none is running" : `${count(running)} not ended`}</span>
        <span class="grow" />
        {chosenNow().length > 0 && <a class="button" href={href(["compare"], { sweeps: chosenNow().join(",") })}>Compare {count(chosenNow().length)}</a>}
        <a class="button primary" href={href(["new"])}>New sweep</a>
      </div>
      <Loading of={model.refresher} ready={all !== null}>
        {all?.length === 0 ? <NoSweeps /> : (
          <section class="panel flush">
            <div class="bar">
              <Chips label="Sweeps by state" chosen={state} options={options} choose={(s) => choose({ state: s === "all" ? null : s })} />
              <input type="search" aria-label="Find sweeps by name" value={query.get("find") ?? ""} placeholder="Find by name or tag" onInput={(e) => choose({ find: e.currentTarget.value || null })} />
            </div>
            <Table label="Sweeps" columns={columns} rows={rows} rowKey={(s) => s.id} order={order} open={(s) => go(["sweeps", s.id])}
              setOrder={(o) => choose({ sort: o.column, order: o.descending ? "desc" : "asc" })} empty="No sweep matches." />
          </section>
        )}
      </Loading>
    </main>
  );
}

function NoSweeps() {
  return (
    <Empty title="No sweeps yet">
      <p>A sweep is a document: parameters, a metric, and what to run. Write it <a href={href(["new"])}>here</a>, or start one from a terminal:</p>
      <pre>assay run examples/digits.yaml --watch</pre>
      <p class="faint">It appears here as soon as it is created.</p>
    </Empty>
  );
}
