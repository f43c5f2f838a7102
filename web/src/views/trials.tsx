/* The table of all trials of a sweep: in any order, filtered by an expression and by state, with
 * columns that the user chooses. Trials that are picked here or chosen by a range in another view
 * can be cancelled, retried or saved together. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, Failure } from "../api/http";
import type * as Api from "../api/types";
import { numberAt, ranOf, valueAt, wordAt, type Table as Trials } from "../data/columns";
import { brushText, clearSelection, filterText, highlight, highlightedNumbers, pick, picked, pickedText, pickOnly, setFilter, shownRows, type Highlight } from "../data/selection";
import { quotedName } from "../data/filter";
import type { SweepTable } from "../data/sweep_table";
import { useJob } from "../data/use_job";
import { count, duration, param, sig, toNumber } from "../format";
import { formatTrials, MOST_COMPARED } from "../live/compared";
import { now } from "../live/page_clock";
import { hasEnded } from "../live/sweep";
import { save } from "../parts/downloads";
import { lazy } from "../parts/lazy";
import { boundsOf, breaks, judgedBy } from "../parts/objectives";
import { attempt, Chips, Confirm, shortGroup, State, TRIAL_STATES } from "../parts/small";
import { leastOf, Table, type Column } from "../parts/table";
import { choose, go, href, route } from "../route";

const TagDialog = lazy(async () => (await import("./tagging")).TagDialog);
const EnqueueDialog = lazy(async () => (await import("./enqueue")).EnqueueDialog);

type Row = number;

interface Shown extends Column<Row> {
  /** The column of the table of trials that orders it. */
  by?: string;
  /** Not shown unless the user asks for it. */
  optional?: boolean;
}

/** By parameter, because one may have a thousand values. */
const widths = new WeakMap<Api.Parameter, number>();

function valueWidth(space: Api.Parameter): number {
  const known = widths.get(space) ?? widthOfValues(space);
  widths.set(space, known);
  return known;
}

/** The characters that the values of a parameter need; floats are shown with four digits. */
function widthOfValues(space: Api.Parameter): number {
  const longest = (values: readonly unknown[]) => Math.min(24, Math.max(...values.map((v) => param(v as Api.Value).length)));
  switch (space.type) {
    case "int": return longest([space.min, space.max]);
    case "categorical": case "ordinal": return longest(space.values);
    case "constant": return longest([space.value]);
    case "bool": return 5;
    default: return 9;
  }
}

function paramColumn(table: Trials, [name, space]: [string, Api.Parameter]): Shown {
  const column = table.column(`param:${name}`);
  return {
    id: `param.${name}`, by: `param:${name}`, label: name, width: Math.min(25, Math.max(9, Math.min(20, name.length + 2), valueWidth(space) + 1)), least: Math.max(Math.min(16, valueWidth(space)), leastOf(name)), numeric: space.type !== "categorical", sorts: true,
    tip: (row) => String(valueAt(column, row) ?? "not active in this trial"),
    cell: (row) => { const v = valueAt(column, row); return v === null ? "" : param(v); },
  };
}

const metricWidth = (name: string) => Math.min(22, Math.max(11, name.length + 2));
const metricLeast = (name: string) => Math.max(9, leastOf(name));

/** The column of a metric besides the first objective: another objective, a constrained metric, or
 * any other that trials reported. */
function metricColumn(table: Trials, sweep: Api.Sweep, name: string, optional: boolean): Shown {
  const column = table.column(`metric:${name}`);
  const bounds = sweep.constraints.filter((c) => c.metric === name).map(boundsOf).join(", ");
  const label = Object.hasOwn(sweep.document.parameters, name) ? `${name} (metric)` : name; // beside the parameter
  return {
    id: `metric.${name}`, by: `metric:${name}`, label, title: bounds || label, width: metricWidth(label), least: metricLeast(label), numeric: true, sorts: true, optional,
    tip: (row) => { const v = numberAt(column, row); return `${v ?? ""}${breaks(sweep, name, v) ? `: ${bounds} must hold` : ""}`; },
    tone: (row) => breaks(sweep, name, numberAt(column, row)) && "bad",
    cell: (row) => sig(numberAt(column, row)),
  };
}

/** What the model foretold of an objective before the trial ran: its mean, or its deviation. */
function predictionColumn(table: Trials, of: "predicted" | "deviation", name: string): Shown {
  const [column, label] = [table.column(`${of}:${name}`), of === "predicted" ? `${name} predicted` : `${name} ±`];
  const title = of === "predicted" ? `What the model foretold of ${name} before the trial ran` : `The deviation of what it foretold of ${name}`;
  return { id: `${of}.${name}`, by: `${of}:${name}`, label, title, width: metricWidth(label), least: metricLeast(label), numeric: true, sorts: true, optional: true, tip: (row) => String(numberAt(column, row) ?? ""), cell: (row) => sig(numberAt(column, row)) };
}

const timeColumn = (table: Trials, id: string, label: string): Shown => ({
  id, by: id, label, width: 18, least: 10, numeric: true, sorts: true, optional: true,
  cell: (row) => { const ms = numberAt(table.column(id), row); return ms === null ? "" : new Date(ms).toISOString().slice(0, 19).replace("T", " "); },
});

const has = (table: Trials, name: string): boolean => {
  const c = table.column(name);
  return c?.kind === "words" ? c.words.length > 0 : c?.kind === "number" && c.isPositive === true;
};

/** So long a trial has run; it follows the clock by itself. */
function Running({ table, row }: { table: Trials; row: Row }) {
  return <>{duration(ranOf(table, row, () => now.value))}</>;
}

const RAN = "How long its attempts ran, without the time in which it waited at a rung or in the queue";

function columnsOf(sweep: Api.Sweep, table: Trials): Shown[] {
  const judged = judgedBy(sweep);
  const value = table.column("value");
  const infeasible = (row: Row) => numberAt(table.column("infeasible"), row) === 1;
  const stateOf = (row: Row) => wordAt(table.state, row) ?? "";
  const ranks: unknown = sweep.document.resources?.ranks ?? 1; // or a parameter, whose column says how many
  const columns: Shown[] = [
    {
      id: "number", label: "Trial", width: 8, least: String(table.n).length + 4, numeric: true, sorts: true,
      cell: (row) => { const n = table.number[row]!; return <><input type="checkbox" aria-label={`Select trial ${n}`} checked={picked.value.has(n)} onChange={(e) => pick(n, e.currentTarget.checked)} /><a href={href(["sweeps", sweep.id, "trials", n])}>{n}</a></>; },
    },
    { id: "state", label: "State", width: 11, sorts: true, cell: (row) => <State state={stateOf(row)} /> },
    { id: "value", label: sweep.metric.name, width: metricWidth(sweep.metric.name), least: metricLeast(sweep.metric.name), numeric: true, sorts: true, tip: (row) => String(numberAt(value, row) ?? ""), tone: (row) => (stateOf(row) === "completed" && !infeasible(row) ? "sure" : "unsure"), cell: (row) => sig(numberAt(value, row)) },
    ...judged.filter((name) => name !== sweep.metric.name).map((name) => metricColumn(table, sweep, name, false)),
  ];
  for (const { name } of sweep.metrics) for (const of of ["predicted", "deviation"] as const) if (table.column(`${of}:${name}`)) columns.push(predictionColumn(table, of, name));
  // Yes or no; nothing for a trial without a result.
  if (sweep.constraints.length > 0) columns.push({ id: "feasible", by: "infeasible", label: "Feasible", title: "Does it keep the constraints of the sweep?", width: 9, sorts: true, tone: (row) => infeasible(row) && "mark", cell: (row) => (stateOf(row) !== "completed" ? "" : infeasible(row) ? "no" : "yes") });
  if (has(table, "group")) {
    columns.push({
      id: "group", by: "group", label: "Group", title: "Trials of a group train in one process", width: 11, least: 6, sorts: true,
      cell: (row) => { const g = wordAt(table.column("group"), row); return g && <a href={href(["sweeps", sweep.id], { group: g })} title={`Only group ${g}`}>{shortGroup(g, sweep.id)}</a>; },
    });
  }
  columns.push(...Object.entries(sweep.document.parameters).map((p) => paramColumn(table, p)));
  const started = (row: Row) => numberAt(table.column("started_at"), row);
  columns.push({ id: "duration", by: "duration", label: "Duration", title: RAN, width: 10, least: 9, numeric: true, sorts: true, cell: (row) => (stateOf(row) === "running" ? <Running table={table} row={row} /> : duration(ranOf(table, row, Date.now))) });
  if (has(table, "restarts")) columns.push({ id: "restarts", by: "restarts", label: "Restarts", width: 9, numeric: true, sorts: true, tone: (row) => !numberAt(table.column("restarts"), row) && "faint", cell: (row) => numberAt(table.column("restarts"), row) ?? 0 });
  const [origin, reasons] = [table.column("origin"), table.column("reason")];
  if (origin?.kind === "words" && origin.words.some((w) => w !== "suggested")) columns.push({ id: "origin", by: "origin", label: "Origin", title: "Where the parameters come from", width: 10, least: 9, sorts: true, tone: (row) => wordAt(origin, row) === "suggested" && "faint", cell: (row) => wordAt(origin, row) });
  const [runners, clients] = [table.column("runner"), table.column("client")];
  const isGang = (row: Row) => ranks !== 1 && wordAt(runners, row) === null && wordAt(clients, row) === null && started(row) !== null;
  columns.push({
    id: "runner", by: sweep.for_runners ? "runner" : "client", label: sweep.for_runners ? "Runner" : "Client", width: 16, least: 7, sorts: true,
    tip: (row) => { const client = wordAt(clients, row); return client ? `client ${client}` : wordAt(runners, row) ?? (isGang(row) ? "its ranks ran on several runners: the page of the trial has them" : ""); },
    cell: (row) => wordAt(runners, row) ?? wordAt(clients, row) ?? (isGang(row) && (typeof ranks === "number" ? `${count(ranks)} ranks` : "ranks")),
  });
  if (has(table, "tags")) columns.push({ id: "tags", by: "tags", label: "Tags", width: 18, least: 6, sorts: true, tip: (row) => wordAt(table.column("tags"), row) ?? "", cell: (row) => wordAt(table.column("tags"), row)?.replaceAll(",", ", ") });
  const parent = table.column("parent");
  if (parent?.kind === "number" && origin?.kind === "words" && origin.words.includes("forked")) {
    columns.push(
      { id: "parent", by: "parent", label: "Parent", title: "The trial that a fork goes on from", width: 8, numeric: true, sorts: true, cell: (row) => { const n = numberAt(parent, row); return n === null ? "" : <a href={href(["sweeps", sweep.id, "trials", n])}>{n}</a>; } },
      { id: "fork_step", by: "fork_step", label: "Fork step", title: "The step at which it goes on", width: 10, numeric: true, sorts: true, optional: true, cell: (row) => numberAt(table.column("fork_step"), row) ?? "" },
    );
  }
  if (has(table, "rung")) columns.push({ id: "rung", by: "rung", label: "Rungs", title: "How many rungs it has reached", width: 7, numeric: true, sorts: true, optional: true, cell: (row) => numberAt(table.column("rung"), row) ?? "" });
  for (const name of table.columns.keys()) if (name.startsWith("metric:") && !judged.includes(name.slice(7))) columns.push(metricColumn(table, sweep, name.slice(7), true));
  columns.push({ id: "attempt", by: "attempt", label: "Attempt", width: 8, numeric: true, sorts: true, optional: true, cell: (row) => numberAt(table.column("attempt"), row) ?? "" }, timeColumn(table, "started_at", "Started"), timeColumn(table, "ended_at", "Ended"));
  if (has(table, "reason")) columns.push({ id: "reason", by: "reason", optional: sweep.counts.failed === 0, label: "Reason", width: 30, least: 8, sorts: true, tip: (row) => wordAt(reasons, row) ?? "", cell: (row) => wordAt(reasons, row) });
  return columns;
}

const TYPED_MS = 60; // so long the filter must be unchanged

/** The ids of the columns that are shown: those of the address, or the usual ones. */
function chosenOf(columns: readonly Shown[]): Set<string> {
  try {
    const given: unknown = JSON.parse(route.value.query.get("columns") ?? "null");
    if (Array.isArray(given)) return new Set(given.map(String));
  } catch {
    // no list: the usual columns
  }
  return new Set(columns.filter((c) => !c.optional).map((c) => c.id));
}

function Chooser({ columns, chosen }: { columns: readonly Shown[]; chosen: ReadonlySet<string> }) {
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => { // it lies over the table, so it closes as a menu does
    const away = (e: Event) => { if (box.current?.open && !box.current.contains(e.target as Node)) box.current.open = false; };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, []);
  const press = (e: KeyboardEvent) => {
    if (e.key !== "Escape" || !box.current?.open) return;
    box.current.open = false;
    box.current.querySelector("summary")?.focus();
  };
  const set = (id: string, on: boolean) => {
    const next = columns.filter((c) => (c.id === id ? on : chosen.has(c.id))).map((c) => c.id);
    const usual = columns.filter((c) => !c.optional).map((c) => c.id);
    choose({ columns: next.join("\n") === usual.join("\n") ? null : JSON.stringify(next) });
  };
  return (
    <details class="chooser" ref={box} onKeyDown={press}>
      <summary>Columns</summary>
      <div>{columns.map((c) => <label key={c.id} class="toggle"><input type="checkbox" checked={chosen.has(c.id)} onChange={(e) => set(c.id, e.currentTarget.checked)} />{c.label}</label>)}</div>
    </details>
  );
}

/** A filter that this sweep's trials have the names of. */
function exampleOf(sweep: Api.Sweep): string {
  const number = Object.entries(sweep.document.parameters as Record<string, Api.Parameter>).find(([, space]) => space.type === "float" || space.type === "int");
  const [name, space] = number ?? ["duration", null];
  const most = space && "max" in space ? sig(toNumber(space.max)) : "60";
  return `${quotedName(name)} < ${most} and state == 'completed'`;
}

/** The expression that filters; it works as one types. */
function Filter({ error, example }: { error: string | null; example: string }) {
  const given = filterText.value;
  const [text, setText] = useState(given);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => setText(given), [given]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setFilter(next), TYPED_MS);
  };
  return (
    <form class="filter" role="search" onSubmit={(e) => { e.preventDefault(); clearTimeout(timer.current); setFilter(text); }}>
      <label>Filter <input type="text" spellcheck={false} autocomplete="off" placeholder={example} value={text} aria-invalid={error !== null} aria-describedby={error === null ? undefined : "filter-error"} onInput={(e) => type(e.currentTarget.value)} /></label>
      {text !== "" && <button type="button" class="quiet" onClick={() => { clearTimeout(timer.current); setText(""); setFilter(""); }}>Clear</button>}
      {error !== null && <span id="filter-error" class="bad" role="status">{error}; until then all trials are shown</span>}
    </form>
  );
}

export function TrialsPanel({ sweep, trials, loaded }: { sweep: Api.Sweep; trials: SweepTable; loaded: boolean }) {
  const { query } = route.value;
  const state = query.get("state") ?? "all";
  const order = { column: query.get("sort") ?? "number", descending: query.get("order") === "desc" };
  const group = query.get("group");
  const newest = trials.table.value;
  const known = useMemo(() => columnsOf(sweep, newest), [sweep, newest]);
  const by = known.find((c) => c.id === order.column);
  const wanted = { filter: filterText.value, sort: by ? by.by ?? by.id : "", descending: order.descending, state: state === "all" ? "" : state, group: group ?? "" };
  const { done, error } = useJob(trials, "rows", wanted);
  const table = done?.table ?? newest;
  const all = useMemo(() => (table === newest ? known : columnsOf(sweep, table)), [sweep, table]);
  const output = done?.output;
  useLayoutEffect(() => { shownRows.value = output?.shown ?? null; }, [output]);
  useEffect(() => () => { shownRows.value = null; }, []);
  const mark = highlight.value;
  const counts = new Map(Object.entries(output?.counts ?? {}));
  const passing = [...counts.values()].reduce((sum, n) => sum + n, 0);
  const options = [{ id: "all", label: "All", count: output === undefined ? undefined : passing },
    ...TRIAL_STATES.filter((s) => (counts.get(s) ?? 0) > 0 || s === state).map((s) => ({ id: s as string, label: s, count: counts.get(s) ?? 0 }))];
  const chosen = chosenOf(all);
  const shown = all.filter((c) => chosen.has(c.id));
  const still = useStill(sweep, table, shown);
  const infeasible = table.column("infeasible");
  const classOf = (row: Row) => [table.number[row] === sweep.best?.number ? "is-best" : numberAt(infeasible, row) === 1 ? "infeasible" : "", mark && mark.rows[row] === 1 ? "is-marked" : ""].join(" ");
  const filtered = filterText.value !== "";
  return (
    <section class="panel flush" aria-label="All trials">
      <div class="bar">
        <h2>Trials</h2>
        <Chips label="Trials by state" chosen={state} options={options} choose={(s) => choose({ state: s === "all" ? null : s })} />
        {group !== null && <button type="button" title="Show the trials of all groups" onClick={() => choose({ group: null })}>Group {shortGroup(group, sweep.id)} ×</button>}
        {!loaded && <span class="faint" role="status">Loading…</span>}
        <span class="grow" />
        <Chooser columns={all} chosen={chosen} />
      </div>
      <div class="bar">
        <Filter error={output?.error ?? null} example={exampleOf(sweep)} />
        <span class="grow" />
        <Selected sweep={sweep} table={table} mark={mark} shown={output?.order ?? NO_ROWS} csv={() => trials.run("csv", { rows: wanted, metric: null, brush: brushText.value, picked: pickedText.value, highlighted: mark ? "only" : "ignored", columns: null })} />
      </div>
      {error !== null && <p class="stale" role="status">Not up to date: {error}</p>}
      <Table label="Trials" columns={shown} rows={output?.order ?? NO_ROWS} inOrder still={still} rowKey={(row) => table.number[row]!} order={order} open={(row) => go(["sweeps", sweep.id, "trials", table.number[row]!])}
        rowClass={classOf}
        setOrder={(o) => choose({ sort: o.column, order: o.descending ? "desc" : "asc" })} empty={loaded && output !== undefined ? (table.n === 0 ? (sweep.counts.total > 0 ? "Loading…" : hasEnded(sweep.state) ? "No trials." : "No trials yet.") : filtered ? "No trial passes the filter." : (group === null ? "No trial is in this state." : "No such trial is in this group.")) : ""} />
    </section>
  );
}

/** What tells whether a row shows something else than before: the columns, and all that the table holds of a trial. So new trials
 * leave the rows in sight as they are. */
function useStill(sweep: Api.Sweep, table: Trials, shown: readonly Shown[]) {
  const ids = shown.map((c) => `${c.id} ${c.label}`).join("\n");
  const of = useMemo(() => ({}), [sweep, ids, table.number.buffer]); // a row holds the arrays of its table, which grow now and then
  return useMemo(() => {
    const columns = [...table.columns.values()];
    const { value: chosen } = picked;
    return { of, mark: (row: Row) => `${chosen.has(table.number[row]!)}\n${columns.map((c) => (c.kind === "number" ? c.values[row] : c.words[c.values[row]!])).join("\n")}` };
  }, [of, table, picked.value]);
}

const NO_ROWS = new Uint32Array(0);
const AT_ONCE = 4; // requests: a browser has six connections to a server

/** A link to the selected trials side by side; of many, to the first ones. */
function Compare({ sweep, numbers }: { sweep: string; numbers: readonly number[] }) {
  const some = numbers.slice(0, MOST_COMPARED);
  return <a class="button" href={href(["compare", "trials"], { of: formatTrials(some.map((number) => ({ sweep, number }))) })} title={some.length < numbers.length ? `Side by side; at most ${MOST_COMPARED} at once` : "Side by side"}>Compare {some.length < numbers.length ? `${some.length} of ` : ""}{count(numbers.length)}</a>;
}

/** What can be done with the highlighted trials, or with all that are shown. */
function Selected({ sweep, table, mark, shown, csv }: { sweep: Api.Sweep; table: Trials; mark: Highlight | null; shown: Uint32Array; csv: () => Promise<string> }) {
  const [asking, setAsking] = useState<"cancel" | "retry" | null>(null);
  const [enqueuing, setEnqueuing] = useState(false);
  const [tagging, setTagging] = useState(false);
  const [progress, setProgress] = useState<string | null>(null);
  const numbers = useMemo(() => highlightedNumbers(table, mark), [table, mark]);
  const rows = useMemo(() => (mark ? Uint32Array.from(numbers, (n) => table.rowOf(n)) : shown), [table, mark, shown]);
  const { open, over } = useMemo(() => {
    const inStates = (states: readonly string[]) => { const those = new Set(states.map((s) => table.state.words.indexOf(s))); return mark ? Array.from(rows.filter((row) => those.has(table.state.values[row]!)), (row) => table.number[row]!) : []; };
    return { open: inStates(["queued", "running", "paused"]), over: inStates(["failed", "cancelled"]) };
  }, [table, mark, rows]);
  const each = (those: readonly number[], what: "cancel" | "retry") => attempt(async () => {
    let [next, done, refused, why] = [0, 0, 0, ""];
    const some = async () => {
      while (next < those.length) {
        const path = { sweep: sweep.id, number: those[next++]! };
        try {
          if (what === "cancel") await call("POST /v1/sweeps/{sweep}/trials/{number}/cancel", { path });
          else await call("POST /v1/sweeps/{sweep}/trials/{number}/retry", { path });
        } catch (error) {
          if (!(error instanceof Failure && error.status === 409)) { next = those.length; throw error; }
          refused++; // that says nothing of the others: this one may have ended meanwhile
          why ||= error.message;
        }
        setProgress(`${count(++done)} of ${count(those.length)}…`);
      }
    };
    setProgress("");
    const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, some));
    setProgress(null);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    if (refused > 0) throw new Error(`${count(refused)} of ${count(those.length)} could not be ${what === "cancel" ? "cancelled" : "retried"}: ${why}`);
  });
  const chosen = asking === "cancel" ? open : over;
  return (
    <div class="selected" role="group" aria-label="Selected trials">
      {mark && <span role="status"><b>{count(mark.count)}</b> selected</span>}
      {progress !== null && <span role="status">{progress}</span>}
      {!mark && filterText.value !== "" && shown.length > 0 && shown.length < table.n && <button type="button" class="quiet" onClick={() => pickOnly([...shown].map((row) => table.number[row]!))}>Select these</button>}
      {open.length > 0 && <button type="button" class="danger" disabled={progress !== null} onClick={() => setAsking("cancel")}>Cancel {count(open.length)}…</button>}
      {over.length > 0 && <button type="button" disabled={progress !== null} onClick={() => setAsking("retry")}>Retry {count(over.length)}…</button>}
      {rows.length > 0 && <button type="button" class="quiet" title={`All columns of ${mark ? "the selected" : "these"} trials`} onClick={() => attempt(async () => save(new Blob([await csv()], { type: "text/csv" }), `${sweep.id}-trials.csv`))}>Save CSV</button>}
      {mark && mark.count > 0 && <button type="button" onClick={() => setEnqueuing(true)} title="Run their parameters again, with changes">Enqueue again…</button>}
      {mark && mark.count > 0 && <button type="button" onClick={() => setTagging(true)} title="Add tags to them, or remove some">Tag…</button>}
      {mark && tagging && <TagDialog sweep={sweep.id} numbers={numbers} close={() => setTagging(false)} />}
      {mark && enqueuing && <EnqueueDialog sweep={sweep} table={table} numbers={numbers} close={() => setEnqueuing(false)} />}
      {mark && mark.count > 0 && <Compare sweep={sweep.id} numbers={numbers} />}
      {mark && <button type="button" class="quiet" onClick={clearSelection}>Select none</button>}
      <Confirm open={asking !== null} title={`${asking === "cancel" ? "Cancel" : "Retry"} ${count(chosen.length)} ${chosen.length === 1 ? "trial" : "trials"} of ${sweep.id}?`} action={asking === "cancel" ? "Cancel them" : "Retry them"} close={() => setAsking(null)} yes={() => each(chosen, asking ?? "retry")}>
        {asking === "cancel" ? "Processes that run are stopped. They are not tried again unless you retry them." : "They are tried again, from the last checkpoint if there is one."}
      </Confirm>
    </div>
  );
}
