/* One sweep: its best result, its history, and all its trials. */
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { call } from "../api/http";
import type * as Api from "../api/types";
import { emptyTable, numberAt, type Table } from "../data/columns";
import { brushText, currentTable, filterText, pickedText } from "../data/selection";
import type { SweepTable } from "../data/sweep_table";
import { useStage } from "../data/turns";
import { useJob } from "../data/use_job";
import { count, duration, inOrder, NONE, param, sig, toNumber, valueText } from "../format";
import { useSight } from "../live/lazy_resource";
import { useModel } from "../live/model";
import { hasEnded, SweepModel } from "../live/sweep";
import { leftOf, openLabel, type HistoryInput } from "../parts/history";
import { HistoryChart } from "../parts/history_chart";
import { lazy } from "../parts/lazy";
import { boundsOf, judgedBy, metricColumn } from "../parts/objectives";
import { PartButtons } from "../parts/part_buttons";
import { attempt, Coming, Confirm, copy, Loading, NoSweep, Progress, Since, State, Toggle, took } from "../parts/small";
import { toYaml } from "../parts/yaml";
import { choose, go, href, route } from "../route";
import { AddToModels } from "./add_model";
import { AskPanel } from "./asktell";
import { ImportancePanel } from "./importance";
import { TrialsPanel } from "./trials";

const EnsemblePanel = lazy(async () => (await import("./ensemble")).EnsemblePanel);
const LimitsDialog = lazy(async () => (await import("./limits")).LimitsDialog);
/** What keeps the place of a panel whose code is on its way: the least height of the panel. */
const room = (px: number) => <div style={{ minHeight: `${px}px` }} />;

const RungsPanel = lazy(async () => (await import("./rungs")).RungsPanel);
const LearnedPanel = lazy(async () => (await import("./learned")).LearnedPanel);
const ParetoPanel = lazy(async () => (await import("./pareto")).ParetoPanel, room(396));
const CurvesPanel = lazy(async () => (await import("./curves")).CurvesPanel, room(460));
const TimelinePanel = lazy(async () => (await import("./timeline")).TimelinePanel, room(326));
const RemarksPanel = lazy(async () => (await import("./remarks")).RemarksPanel);
const ExplorePanel = lazy(async () => (await import("./explore")).ExplorePanel, room(509));

export function SweepView({ id }: { id: string }) {
  const model = useModel(() => new SweepModel(id), `sweep ${id}`);
  const ready = model.steady.value !== null;
  const panels = useMemo(() => <Panels model={model} />, [model]);
  return <main><Loading of={model.refresher} also={model.following} ready={ready} missing={<NoSweep id={id} />}>{ready && panels}</Loading></main>;
}

/** Below the head. What every new trial changes is read by the panel that shows it, so that no other is computed again. */
function Panels({ model }: { model: SweepModel }) {
  const sweep = model.steady.value!;
  const loaded = model.trials.loaded.value;
  const stage = useStage(2);
  // Where it is when the page opens it stays: whoever types into it keeps the focus when the first trial comes.
  const [asksFirst] = useState(sweep.counts.total === 0);
  return (
    <>
      <ViewedTable model={model} />
      <Head model={model} sweep={sweep} />
      <Now of={model} show={(now) => <><Facts sweep={now} every={model.trials.turns.every.value} />{asksFirst && <AskPanel sweep={now} />}</>} />
      <div class="columns">
        <ChartPanel sweep={sweep} model={model} loaded={loaded} />
        <BestPanel sweep={sweep} model={model} />
      </div>
      {stage > 0 && <>
        {!asksFirst && <Now of={model} show={(now) => <AskPanel sweep={now} />} />}
        {sweep.metrics.length > 1 && <ParetoPanel sweep={sweep} trials={model.trials} pareto={model.pareto} />}
        <Now of={model} show={(now) => (now.early_stopping ? <div class="keeps" style={{ minHeight: `${100 + 26 * now.early_stopping.rungs.length}px` }}><RungsPanel sweep={now} /></div> : null)} />
        {(sweep.counts.completed > 0 || (sweep.counts.total > 0 && !hasEnded(sweep.state))) && <ImportancePanel sweep={sweep} model={model} />}
        <CurvesPanel model={model} sweep={sweep} />
        <ExplorePanel model={model} sweep={sweep} />
        {sweep.counts.total > 0 && <TimelinePanel model={model} sweep={sweep} />}
        <EnsemblePlace sweep={sweep} ensemble={model.ensemble.value} />
      </>}
      {stage > 1 && <>
        <TrialsPanel sweep={sweep} trials={model.trials} loaded={loaded} />
        <Now of={model} show={(now) => (now.learned ? <LearnedPanel learned={now.learned} /> : null)} />
        <RemarksPanel sweep={sweep} take={(now: Api.Sweep) => model.take(now)} />
        <DocumentPanel document={sweep.document} />
      </>}
    </>
  );
}

const ENSEMBLE_PX = 239; // of its panel

/** The ensemble. Where the built-in trainer makes one, its place is kept from the first trial on: it comes after the end,
 * above the table that people work in. */
function EnsemblePlace({ sweep, ensemble }: { sweep: Api.Sweep; ensemble: Api.Ensemble | null }) {
  const trial = sweep.document.trial;
  const comes = sweep.counts.total > 0 && Boolean(sweep.document.ensemble) && trial !== undefined && "train" in trial && ensemble?.state !== "none";
  const isThere = ensemble !== null && (ensemble.state === "ready" || hasEnded(sweep.state));
  if (!comes) return ensemble && <EnsemblePanel sweep={sweep} ensemble={ensemble} />;
  return (
    <div class="keeps" style={{ minHeight: `${ENSEMBLE_PX}px` }}>
      {isThere ? <EnsemblePanel sweep={sweep} ensemble={ensemble} />
        : <div class="panel"><div class="bar"><h2>Ensemble</h2></div><p class="hint">{hasEnded(sweep.state) ? "" : "It is made of the best trials when the sweep has ended."}</p></div>}
    </div>
  );
}

/** What shows figures of the sweep that every trial changes. */
function Now({ of, show }: { of: SweepModel; show: (sweep: Api.Sweep) => preact.ComponentChildren }) {
  return <>{show(of.sweep.value!)}</>;
}

/** Says which table the selection is of. */
function ViewedTable({ model }: { model: SweepModel }) {
  const table = model.trials.table.value;
  useLayoutEffect(() => { currentTable.value = table; }, [table]);
  useEffect(() => () => { currentTable.value = emptyTable(); }, []);
  return null;
}

/** Says nothing of a sweep that completed. */
const ORDINARY_END = "every trial has ended";

function Head({ model, sweep }: { model: SweepModel; sweep: Api.Sweep }) {
  const [asking, setAsking] = useState(false);
  const [retrying, setRetrying] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const [limits, setLimits] = useState(false);
  const [busy, setBusy] = useState(false);
  const [ran] = useState(!hasEnded(sweep.state)); // who saw it run sees its buttons keep their places
  const stands = sweep.state === "paused" || sweep.state === "cancelled";
  const trains = sweep.document.trial !== undefined && "train" in sweep.document.trial;
  const change = async (state: "running" | "paused" | "cancelled") => {
    if (busy) return;
    setBusy(true);
    await attempt(async () => model.take(await call("PATCH /v1/sweeps/{sweep}", { path: { sweep: sweep.id }, body: { state } })));
    setBusy(false);
  };
  const retry = () => attempt(async () => {
    for (let left = model.sweep.value!.counts.failed; left > 0;) { // one request takes a limited number
      const { numbers, sweep: now } = await call("POST /v1/sweeps/{sweep}/retry", { path: { sweep: sweep.id }, body: { state: "failed" } });
      model.take(now);
      left = numbers.length === 0 ? 0 : left - numbers.length;
    }
  });
  const remove = async () => {
    setBusy(true);
    await attempt(async () => {
      await call("DELETE /v1/sweeps/{sweep}", { path: { sweep: sweep.id } });
      go(["sweeps"]);
    });
    setBusy(false);
  };
  return (
    <>
      <div class="head">
        <nav aria-label="Where this is"><a href={href(["sweeps"])}>Sweeps</a><span aria-hidden="true">/</span></nav>
        <h1 title={sweep.name}>{sweep.id}</h1>
        <State state={sweep.state} />
        <div class="acts">
          <AddToModels sweep={sweep.id} may={hasEnded(sweep.state) && sweep.counts.completed > 0 && trains} will={ran && trains} />
          <Coming there={sweep.counts.failed > 0} keeps={ran} like="Retry failed…"><button type="button" onClick={() => setRetrying(true)}>Retry failed…</button></Coming>
          {(ran || stands) && <button type="button" class={stands ? "primary either" : sweep.state === "running" ? "either" : "either coming"} aria-disabled={busy} onClick={() => change(stands ? "running" : "paused")}>{stands ? "Resume" : "Pause"}</button>}
          <a class="button" href={href(["compare"], { sweeps: sweep.id })} title="Best so far and distribution beside other sweeps">Compare</a>
          <a class="button" href={href(["new"], { from: sweep.id })} title="Begin a sweep with this document">Clone</a>
          <button type="button" onClick={() => setLimits(true)}>Limits…</button>
          <button type="button" class="danger either" aria-disabled={busy} onClick={() => { if (!busy) (hasEnded(sweep.state) ? setDeleting : setAsking)(true); }}>{hasEnded(sweep.state) ? "Delete…" : "Cancel…"}</button>
        </div>
      </div>
      {sweep.reason && !(sweep.state === "completed" && sweep.reason === ORDINARY_END) && <p class={sweep.state === "failed" ? "reason bad" : "reason"}>{sweep.reason}</p>}
      {sweep.document.description && <p class="reason">{sweep.document.description}</p>}
      {sweep.tags.length > 0 && <ul class="tags" aria-label="Tags">{sweep.tags.map((tag) => <li key={tag}>{tag}</li>)}</ul>}
      <Confirm open={asking} title={`Cancel ${sweep.id}?`} action="Cancel the sweep" close={() => setAsking(false)} yes={() => change("cancelled")}>
        {asking && <Now of={model} show={stoppedText} />}No more are started. Finished trials and their files stay. The sweep can be resumed.
      </Confirm>
      <Confirm open={retrying} title={`Retry failed trials of ${sweep.id}?`} action="Retry them" close={() => setRetrying(false)} yes={retry}>
        {retrying && <Now of={model} show={({ counts: { failed } }) => `${count(failed)} failed ${failed === 1 ? "trial is" : "trials are"}`} />} tried again, from the last checkpoint if there is one. The limits of the sweep hold.
      </Confirm>
      <Confirm open={deleting} title={`Delete ${sweep.id}?`} action="Delete the sweep" close={() => setDeleting(false)} yes={remove}>
        Its {deleting && <Now of={model} show={({ counts }) => count(counts.total)} />} trials, their curves, outputs and files are deleted for good. Models that were made of it stay.
      </Confirm>
      {limits && <LimitsDialog sweep={sweep} take={(now: Api.Sweep) => model.take(now)} close={() => setLimits(false)} />}
    </>
  );
}

/** What cancelling the sweep stops. */
function stoppedText({ counts }: Api.Sweep): string {
  const open = counts.running + counts.queued + counts.paused;
  return open > 0 ? `${count(open)} trials that have not ended are stopped. ` : "";
}

/** Time left at the present rate; null while the rate is unknown. */
function timeLeft(sweep: Api.Sweep): number | null {
  const c = sweep.counts;
  const done = c.completed + c.pruned + c.failed + c.cancelled;
  const ran = took(sweep.started_at, sweep.finished_at);
  if (sweep.state !== "running" || ran === null || done < 2) return null;
  return (ran / done) * Math.max(0, sweep.planned_trials - done);
}

/** `every`: seconds between two changes of what is drawn; 0: too few to say. */
function Facts({ sweep, every }: { sweep: Api.Sweep; every: number }) {
  const c = sweep.counts;
  const ended = c.completed + c.pruned + c.failed + c.cancelled;
  const left = timeLeft(sweep);
  const [ran] = useState(!hasEnded(sweep.state));
  const planned = count(sweep.planned_trials);
  const gain = sweep.regret?.enough && typeof sweep.regret.bound === "number" ? <span title={`At most, by a model of ${sweep.regret.completed} completed trials`}>≤ {sig(sweep.regret.bound, 2)}</span> : null;
  const follow = every > 0 && !hasEnded(sweep.state) ? <span title="Charts and tables are drawn again so often while trials arrive, so that they leave the processor free; these figures are newer">about every {duration(1000 * every)}</span> : null;
  const facts: Fact[] = [
    ["Ended", <><b data-testid="ended">{count(ended)}</b> of {planned}</>, 2 * planned.length + 4],
    ["Running", count(c.running), planned.length],
    ["Queued", count(c.queued), planned.length],
    ["Failed", <span class={c.failed > 0 ? "bad" : ""}>{count(c.failed)}</span>, planned.length],
    ["Method", sweep.method, 0],
    ["Seed", <span title={sweep.seed}>{sweep.seed}</span>, 0],
    ["Started", <Since time={sweep.started_at} />, TIME_CH],
    ["Took", duration(took(sweep.started_at, sweep.finished_at)), TIME_CH],
  ];
  if (sweep.known_trials > 0) facts.push(["Known results", count(sweep.known_trials), 0]);
  if (sweep.constraints.length > 0) facts.push(["Must hold", sweep.constraints.map(boundsOf).join(", "), 0]);
  if (left !== null || ran) facts.push(["Left, about", left === null ? null : duration(left), TIME_CH]);
  if (gain !== null) facts.push(["May still gain", gain, 9]);
  if (follow !== null || ran) facts.push(["Views follow", follow, 16]);
  return (
    <section class="facts" aria-label="Progress">
      <Progress counts={c} planned={sweep.planned_trials} />
      <dl>{facts.map(([name, value, ch]) => <div key={name} class={value === null ? "coming" : ""} aria-hidden={value === null} style={ran ? { minWidth: `${ch}ch` } : undefined}><dt>{name}</dt><dd>{value ?? NONE}</dd></div>)}</dl>
    </section>
  );
}

/** A name, its value (null: it is not known yet), and the characters of the longest value, so that no
 * other moves while it runs. */
type Fact = [name: string, value: preact.ComponentChildren | null, ch: number];

const TIME_CH = 10; // 59 min ago

/** The part of the history that the address names: numbers of trials. */
function partOf(text: string | null): [number, number] | null {
  const found = /^(\d{1,9})-(\d{1,9})$/.exec(text ?? "");
  const [from, to] = [Number(found?.[1]), Number(found?.[2])];
  return from < to ? [from, to] : null;
}

function ChartPanel({ sweep, model, loaded }: { sweep: Api.Sweep; model: SweepModel; loaded: boolean }) {
  const { query } = route.value;
  const y = query.get("y");
  const part = partOf(query.get("part"));
  const [from, to] = part ?? [null, null];
  const filter = filterText.value;
  const input: HistoryInput = { goal: sweep.metric.goal, y: y === "log" || y === "linear" ? y : "auto", far: query.get("far") === "show", filter, brush: brushText.value, picked: pickedText.value, from, to };
  const { done, error } = useJob(model.trials, "history", input);
  const h = done?.output;
  const table = done?.table ?? model.trials.table.value;
  const canPredict = table.column(`predicted:${sweep.metric.name}`) !== undefined;
  const predictions = canPredict && query.get("predicted") === "show";
  const predicted = useJob(model.trials, "foretold", { metric: sweep.metric.name, filter, from, to }, predictions);
  const checks = model.regret.value.value;
  const left = useMemo(() => leftOf(checks ?? [], table, sweep.metric.goal), [checks, table, sweep.metric.goal]);
  const sight = useSight<HTMLElement>(model.regret);
  const chooseLog = (on: boolean) => choose({ y: on === h?.wide ? null : on ? "log" : "linear" });
  const choosePart = (chosen: readonly [number, number] | null) => choose({ part: chosen && chosen.join("-") });
  const [first, last] = h !== undefined && h.last > h.first ? [h.first, h.last] : [0, 0];
  const isEmpty = loaded && table.n === 0 && sweep.counts.total === 0; // else the table follows
  return (
    <section ref={sight} class="panel chart" aria-label="History" data-points={h?.completed ?? 0} data-bounds={left.x.length} data-highlighted={h?.highlighted ?? 0}>
      <div class="bar">
        <h2><bdi>{sweep.metric.name}</bdi> <small>{sweep.metric.goal}</small></h2>
        <span class="grow" />
        {!isEmpty && <span class="toggles">
          {h && h.far > 0 && <Toggle label="Show all values" on={!h.clip} change={(on) => choose({ far: on ? "show" : null })} title="Also the values that lie far from the rest" />}
          {canPredict && <Toggle label="Predictions" on={predictions} change={(on) => choose({ predicted: on ? "show" : null })} title="What the model foretold of each trial before it ran: mean, and a deviation to either side" />}
          <Toggle label="Log scale" on={h?.log ?? false} disabled={h?.positive === false} change={chooseLog} title={h?.positive === false ? "Values at or below zero have no logarithm" : "Logarithmic y axis"} />
        </span>}
        {!isEmpty && <PartButtons label="Part of the trials" first={first} last={last} from={Math.max(first, from ?? first)} to={Math.min(last, to ?? last)} least={2} choose={choosePart} />}
      </div>
      {!(isEmpty && hasEnded(sweep.state)) && <ul class={isEmpty ? "legend own coming" : "legend own"}>
        <li class="l-done">completed</li><li class="l-best">best so far</li>
        {h && openLabel(h) !== null && <li class="l-open">{openLabel(h)}</li>}
        {h?.isInfeasible && <li class="l-infeasible">infeasible</li>}
        {sweep.counts.failed > 0 && <li class="l-failed">failed</li>}
        {h?.marked && <li class="l-marked">{count(h.highlighted)} highlighted</li>}
        {left.x.length > 0 && <li class="l-left" title="No configuration is better than the dashed line, by a model and with high probability">may still be gained</li>}
        {predictions && <li class="l-whisker">predicted</li>}
        {h && h.far > 0 && h.clip && <li class="l-far">{count(h.far)} off the scale</li>}
      </ul>}
      {error !== null && <p class="stale" role="status">Not up to date: {error}</p>}
      {predicted.error !== null && <p class="stale" role="status">Predictions are not up to date: {predicted.error}</p>}
      {isEmpty ? <p class={hasEnded(sweep.state) ? "hint" : "hint tall"}>{whyEmpty(sweep)}</p>
        : !h || table.n === 0 ? <p class="hint tall">Loading…</p> : h.rows.length === 0 && table.n > 0 ? <p class="hint tall">{filter !== "" && part === null ? "No trial passes the filter." : "No trial lies in this part."}</p>
          : h.completed === 0 && h.open.every((v) => v === null) ? <p class="hint tall">{noValue(sweep, table, filter !== "" || part !== null)}</p>
          : <HistoryChart sweep={sweep} table={table} history={h} predictions={predictions ? predicted.done?.output ?? null : null} left={left} part={part} choosePart={choosePart} open={(n) => go(["sweeps", sweep.id, "trials", n])} csv={() => model.trials.run("historyCsv", { ...input, metric: sweep.metric.name })} />}
    </section>
  );
}

/** Why the history is empty although there are trials. `some`: not all of them are asked for. */
function noValue(sweep: Api.Sweep, table: Table, some: boolean): string {
  if (some) return "None of these trials has completed.";
  const completed = table.state.words.indexOf("completed");
  if (sweep.counts.completed > 0 && !table.state.values.subarray(0, table.n).includes(completed)) return "Loading…"; // the table follows
  return `No trial has a value${hasEnded(sweep.state) ? "" : " yet"}.`;
}

/** What a sweep without trials waits for. */
function whyEmpty({ state, for_runners: forRunners }: Api.Sweep): string {
  if (hasEnded(state)) return "It ended without a trial.";
  if (state === "paused") return "No trials yet, and none begins while the sweep is paused.";
  return `No trials yet: they appear as ${forRunners ? "runners claim" : "clients ask for"} them.`;
}

/** Why there is no best trial. */
function noneOf(sweep: Api.Sweep): string {
  const what = sweep.counts.completed > 0 && sweep.constraints.length > 0 ? "kept the constraints" : "completed";
  return hasEnded(sweep.state) ? `No trial ${what}.` : `No trial has ${what} yet.`;
}

function BestPanel({ sweep, model }: { sweep: Api.Sweep; model: SweepModel }) {
  const best = model.best.value;
  const others = judgedBy(sweep).filter((name) => name !== sweep.metric.name);
  return (
    <section class="panel best" aria-label="Best trial">
      <div class="bar"><h2>Best trial{sweep.metrics.length > 1 && <small> by {sweep.metric.name}</small>}</h2>{best && <a href={href(["sweeps", sweep.id, "trials", best.number])}>#{best.number}</a>}</div>
      {best ? (
        <>
          <p class="big"><b title={String(best.value)} data-testid="best">{sig(toNumber(best.value))}</b> <small>{sweep.metric.name}</small></p>
          {best.expected && <p class="note" data-testid="expected">Values are noisy. A model expects {sig(toNumber(best.expected.mean))} here, with 95% within {sig(toNumber(best.expected.low))} and {sig(toNumber(best.expected.high))}.{best.told.number !== best.number && best.told.value !== best.value && <> The best value, {sig(toNumber(best.told.value))}, was <a href={href(["sweeps", sweep.id, "trials", best.told.number])}>#{best.told.number}</a>'s.</>}</p>}
          {others.length > 0 && <Others names={others} of={best.number} trials={model.trials} />}
          <dl class="pairs">{inOrder(best.params, sweep).map(([k, v]) => <div key={k}><dt>{k}</dt><dd title={valueText(v)}>{param(v)}</dd></div>)}</dl>
        </>
      ) : <p class="hint">{noneOf(sweep)}</p>}
    </section>
  );
}

/** The other objectives and constrained metrics of a trial. */
function Others({ names, of, trials }: { names: readonly string[]; of: number; trials: SweepTable }) {
  const table = trials.table.value;
  const row = table.rowOf(of);
  return <p class="others">{names.map((name) => <span key={name}><b>{row < 0 ? NONE : sig(numberAt(metricColumn(table, name), row))}</b> <small>{name}</small></span>)}</p>;
}

function DocumentPanel({ document }: { document: Api.SweepDocument }) {
  const text = useMemo(() => toYaml(document), [document]);
  return (
    <details class="panel copies document">
      <summary>Sweep document</summary>
      <button type="button" class="quiet" onClick={() => attempt(() => copy(text))}>Copy</button>
      <pre>{text}</pre>
    </details>
  );
}
