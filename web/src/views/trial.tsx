/* One trial: its parameters and their reason, its metrics, attempts, curves, output and files. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, download } from "../api/http";
import type * as Api from "../api/types";
import { bytes, clock, count, duration, inOrder, NONE, param, sig, toNumber, valueText } from "../format";
import { useModel } from "../live/model";
import { now } from "../live/page_clock";
import { isOpen, TrialModel } from "../live/trial";
import { Curves } from "../parts/curves";
import { Found, placesOf } from "../parts/found";
import { lazy } from "../parts/lazy";
import { boundsOf, breaks, fullMetric, isInfeasible, judgedBy, limitsOf, metricOf } from "../parts/objectives";
import { attempt, Confirm, Loading, NoSweep, ranFor, shortGroup, Since, State, Toggle, took } from "../parts/small";
import { choose, go, href, route } from "../route";
import { AddToModels } from "./add_model";
import { GangPanel } from "./gang";
import { TrialRungsPanel } from "./rungs";
import { WhyPanel } from "./why";

const UsagePanel = lazy(async () => (await import("./usage")).UsagePanel);
const WholeLogDialog = lazy(async () => (await import("./whole_log")).WholeLogDialog);
const PreviewDialog = lazy(async () => (await import("./preview")).PreviewDialog);
const TagDialog = lazy(async () => (await import("./tagging")).TagDialog);

export function TrialView({ sweep, number }: { sweep: string; number: number }) {
  const model = useModel(() => new TrialModel(sweep, number), `trial ${sweep} ${number}`);
  const trial = model.trial.value;
  const { error } = model.refresher;
  const isKnown = (above: object | null) => above !== null || error.value !== null; // what is loaded later stands below it, on a phone
  return (
    <main>
      <Loading of={model.refresher} ready={trial !== null} missing={model.sweep.value ? <NoTrial sweep={sweep} number={number} /> : <NoSweep id={sweep} />}>
        {trial && (
          <>
            <Head model={model} trial={trial} />
            <div class="columns around">
              <div class="stack">
                <ParamsPanel trial={trial} sweep={model.sweep.value} />
                <MetricsPanel trial={trial} sweep={model.sweep.value} />
                <TestPanel trial={trial} />
                <NotesPanel trial={trial} />
              </div>
              <div class="stack beside">
                <CurvesPanel model={model} trial={trial} />
                {isKnown(model.series.value) && <GangPanel gang={model.gang.value} />}
                {isKnown(model.log.value) && <LogPanel model={model} trial={trial} />}
                {isKnown(model.log.value) && model.usage.value.length > 0 && <UsagePanel usage={model.usage.value} file={`${sweep}-${number}`} />}
              </div>
              <div class="stack">
                {isKnown(model.log.value) && <>
                  <WhyPanel trial={trial} sweep={model.sweep.value} />
                  <TrialRungsPanel trial={trial} />
                  <AttemptsPanel trial={trial} />
                  <FilesPanel files={model.files.value} />
                </>}
              </div>
            </div>
          </>
        )}
      </Loading>
    </main>
  );
}

function NoTrial({ sweep, number }: { sweep: string; number: number }) {
  return (
    <>
      <h1>There is no trial #{number} in <bdi>{sweep}</bdi></h1>
      <p>Trials are numbered from 0, in the order in which they were made.</p>
      <p><a href={href(["sweeps", sweep])}>The sweep <bdi>{sweep}</bdi></a></p>
    </>
  );
}

/** The left and the right arrow open the views `before` and `after`, unless what has the focus uses them itself. */
function useArrows(before: (string | number)[] | null, after: (string | number)[] | null): void {
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      const to = e.key === "ArrowLeft" ? before : e.key === "ArrowRight" ? after : null;
      const own = e.target instanceof Element && e.target.closest("input, select, textarea, dialog, pre, [role=region]");
      if (to === null || own || e.altKey || e.ctrlKey || e.metaKey || e.shiftKey) return;
      e.preventDefault();
      go(to);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [before?.join("/"), after?.join("/")]);
}

function Head({ model, trial }: { model: TrialModel; trial: Api.TrialDetail }) {
  const [asking, setAsking] = useState(false);
  const [tagging, setTagging] = useState(false);
  const tags = trial.tags ?? [];
  const metric = model.sweep.value?.metric;
  const gang = trial.attempts.at(-1)?.gang;
  const total = model.sweep.value?.counts.total ?? 0;
  const before = trial.number > 0 ? ["sweeps", trial.sweep, "trials", trial.number - 1] : null;
  const after = trial.number + 1 < total ? ["sweeps", trial.sweep, "trials", trial.number + 1] : null;
  useArrows(before, after);
  const [ran] = useState(isOpen(trial.state)); // who saw it run sees its buttons keep their places
  const mayRetry = (trial.state === "failed" || trial.state === "cancelled") && trial.origin !== "known";
  const program = model.sweep.value?.document.trial;
  const trains = program !== undefined && "train" in program && (isOpen(trial.state) || trial.state === "completed");
  const at = { sweep: trial.sweep, number: trial.number };
  const cancel = () => attempt(async () => {
    await call("POST /v1/sweeps/{sweep}/trials/{number}/cancel", { path: at });
    model.refresher.ask();
  });
  const retry = () => attempt(async () => {
    await call("POST /v1/sweeps/{sweep}/trials/{number}/retry", { path: at });
    model.refresher.ask();
  });
  const facts: [string, preact.ComponentChildren][] = [
    [metric?.name ?? "Value", <b title={String(trial.value ?? "")} data-testid="value">{sig(toNumber(trial.value))}</b>],
    ["Step", trial.step === null || trial.step === undefined ? NONE : count(trial.step)],
    ["Attempt", trial.attempt === 0 ? NONE : String(trial.attempt)],
    ["Restarts", String(trial.restarts)],
    [trial.client ? "Client" : "Runner", trial.runner ?? trial.client ?? (gang ? `${count(gang.ranks)} ranks` : NONE)],
    ...(trial.group ? [["Group", <a href={href(["sweeps", trial.sweep], { group: trial.group })} title={`${trial.group}: the trials that train in its process`}>{shortGroup(trial.group, trial.sweep)}</a>] as [string, preact.ComponentChildren]] : []),
    ["Origin", trial.origin],
    ...(typeof trial.parent === "number" ? [["Parent", <><Fork sweep={trial.sweep} number={trial.parent} /> at step {count(trial.fork_step ?? 0)}</>] as [string, preact.ComponentChildren]] : []),
    ...(trial.forks.length > 0 ? [["Forks", trial.forks.map((f, i) => <>{i > 0 && ", "}<Fork sweep={trial.sweep} number={f.number} /> from step {count(f.step)}</>)] as [string, preact.ComponentChildren]] : []),
    ["Started", <Since time={trial.started_at} />],
    ["Ran", <span title="Its attempts together, without the time in which it waited at a rung or in the queue">{duration(ranFor(trial))}</span>],
    ["Seed", trial.seed],
  ];
  return (
    <>
      <div class="head">
        <nav aria-label="Where this is">
          <a href={href(["sweeps"])}>Sweeps</a><span aria-hidden="true">/</span><a href={href(["sweeps", trial.sweep])}>{trial.sweep}</a><span aria-hidden="true">/</span>
        </nav>
        <h1>#{trial.number}</h1>
        <State state={trial.state} />
        {isInfeasible(trial) && <State state="infeasible" />}
        <div class="acts">
          <AddToModels sweep={trial.sweep} trial={trial.number} may={trial.state === "completed" && (model.files.value ?? []).some((f) => f.path === "model.safetensors")} will={trains} />
          {before && <a class="button" href={href(before)} title="Trial before this one (←)">‹ #{trial.number - 1}</a>}
          {after && <a class="button" href={href(after)} title="Trial after this one (→)">#{trial.number + 1} ›</a>}
          <button type="button" onClick={() => setTagging(true)}>Tags…</button>
          {(ran || isOpen(trial.state) || mayRetry) && <button type="button" class={mayRetry ? "either" : isOpen(trial.state) ? "danger either" : "either coming"} onClick={() => (mayRetry ? void retry() : setAsking(true))}>{mayRetry ? "Retry" : "Cancel…"}</button>}
        </div>
      </div>
      {tags.length > 0 && <ul class="tags" aria-label="Tags">{tags.map((tag) => <li key={tag}>{tag}</li>)}</ul>}
      {tagging && <TagDialog sweep={trial.sweep} numbers={[trial.number]} tags={tags} close={() => setTagging(false)} done={() => model.readAgain()} />}
      {trial.reason && <p class={trial.state === "failed" ? "reason bad" : "reason"}>{trial.reason}</p>}
      {isInfeasible(trial) && <p class="reason">It does not keep the constraints, and so is not counted among the best: {model.sweep.value?.constraints.map(boundsOf).join(", ")} must hold.</p>}
      <section class="facts" aria-label="Facts"><dl>{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl></section>
      <Confirm open={asking} title={`Cancel trial #${trial.number}?`} action="Cancel the trial" close={() => setAsking(false)} yes={cancel}>
        {trial.state === "running" ? "Its process is stopped. " : ""}It is not tried again unless you retry it.
      </Confirm>
    </>
  );
}

/** Another trial of the family: what it goes on from, or what goes on from it (early stopping by population). */
function Fork({ sweep, number }: { sweep: string; number: number }) {
  return <a href={href(["sweeps", sweep, "trials", number])}>#{number}</a>;
}

function ParamsPanel({ trial, sweep }: { trial: Api.TrialDetail; sweep: Api.Sweep | null }) {
  return (
    <section class="panel" aria-label="Parameters">
      <div class="bar"><h2>Parameters</h2></div>
      <dl class="pairs">{inOrder(trial.params, sweep).map(([k, v]) => <div key={k}><dt>{k}</dt><dd title={valueText(v)}>{param(v)}</dd></div>)}</dl>
      {trial.shape && <p class="hint" title="Trials of one shape may train in one process">Shape: {trial.shape}</p>}
    </section>
  );
}

/** Texts that the program wrote beside its numbers: the last one of each name. */
/** What its model is worth on the test rows. They are no metrics of the trial: nothing is chosen by them. */
function TestPanel({ trial }: { trial: Api.TrialDetail }) {
  const test = trial.test;
  if (test === null || test === undefined) return null;
  return (
    <section class="panel" aria-label="Test rows">
      <div class="bar"><h2>Test rows <small>{count(test.rows)}</small></h2></div>
      <dl class="pairs">{Object.entries(test.metrics).map(([k, v]) => <div key={k}><dt>{k}</dt><dd title={String(v)}>{sig(toNumber(v))}</dd></div>)}</dl>
    </section>
  );
}

function NotesPanel({ trial }: { trial: Api.TrialDetail }) {
  const attrs = Object.entries(trial.user_attrs ?? {}).map(([k, v]): [string, string] => [k, typeof v === "string" ? v : JSON.stringify(v)]);
  const notes = [...Object.entries(trial.notes), ...attrs];
  if (notes.length === 0) return null;
  return (
    <section class="panel" aria-label="Notes">
      <div class="bar"><h2>Notes</h2></div>
      <dl class="pairs">{notes.map(([k, v], i) => <div key={i}><dt>{k}</dt><dd title={v}>{v}</dd></div>)}</dl>
    </section>
  );
}

/** Objectives and constrained metrics, if there is more than one: each with its goal or its bounds,
 * and whether the trial keeps them. */
function MetricsPanel({ trial, sweep }: { trial: Api.TrialDetail; sweep: Api.Sweep | null }) {
  if (sweep === null || judgedBy(sweep).length < 2) return null;
  const goals = (name: string) => [...sweep.metrics.filter((m) => m.name === name).map((m) => m.goal), ...sweep.constraints.filter((c) => c.metric === name).map(limitsOf)].join(", ");
  return (
    <section class="panel" aria-label="Metrics">
      <div class="bar"><h2>Metrics</h2></div>
      <dl class="pairs">
        {judgedBy(sweep).map((name) => {
          const value = metricOf(trial, name);
          const broken = breaks(sweep, name, value);
          return <div key={name}><dt>{name} <small>{goals(name)}</small></dt><dd class={broken ? "bad" : ""} title={fullMetric(trial, name)}>{sig(value)}{broken && " (broken)"}</dd></div>;
        })}
      </dl>
    </section>
  );
}

/** From the begin of the first attempt to the end of the last, or to now: each attempt's part of that time in per cent. */
function placesOfAttempts(attempts: Api.TrialDetail["attempts"], until: number): { left: number; width: number }[] {
  const times = attempts.map((a) => [Date.parse(a.started_at), a.ended_at ? Date.parse(a.ended_at) : until] as const);
  const begin = Math.min(...times.map((t) => t[0]));
  const whole = Math.max(1, Math.max(...times.map((t) => t[1])) - begin);
  return times.map(([from, to]) => ({ left: (100 * (from - begin)) / whole, width: Math.max(0, (100 * (to - from)) / whole) }));
}

function AttemptsPanel({ trial }: { trial: Api.TrialDetail }) {
  const places = placesOfAttempts(trial.attempts, now.value);
  return (
    <section class="panel flush" aria-label="Attempts">
      <div class="bar"><h2>Attempts</h2></div>
      {trial.attempts.length === 0 ? <p class="hint">{trial.origin === "known" ? "None: its result was known." : isOpen(trial.state) ? "Nobody has begun it yet." : "Nobody began it."}</p> : (
        <div class="scroll">
          <table class="attempts">
            <thead><tr><th scope="col" class="num">#</th><th scope="col">Outcome</th><th scope="col">By</th><th scope="col" class="num">Took</th></tr></thead>
            {trial.attempts.map((a, i) => (
              <tbody key={a.attempt}>
                <tr>
                  <td class="num">{a.attempt}</td>
                  <td><State state={a.outcome ?? "running"} />{a.exit_code !== null && a.exit_code !== undefined && a.exit_code !== 0 && <span class="faint"> {a.exit_code < 0 ? `signal ${-a.exit_code}` : `exit ${a.exit_code}`}</span>}</td>
                  <td title={a.gang ? "ranks" : a.runner ? "runner" : "client"}>{a.gang ? `${count(a.gang.ranks)} ranks` : (a.runner ?? a.client)}{a.group && <span class="faint"> {shortGroup(a.group, trial.sweep)}</span>}</td>
                  <td class="num" title={`From ${clock(a.started_at)}${a.ended_at ? ` to ${clock(a.ended_at)}` : ""}`}>{duration(took(a.started_at, a.ended_at))}</td>
                </tr>
                <tr class="when">
                  <td />
                  <td colSpan={3}>
                    <span class="track" aria-hidden="true"><span class={`part state-${a.outcome ?? "running"}`} style={{ left: `${places[i]?.left ?? 0}%`, width: `${places[i]?.width ?? 0}%` }} /></span>
                    {a.reason && <span class="faint">{a.reason}</span>}
                  </td>
                </tr>
              </tbody>
            ))}
          </table>
        </div>
      )}
    </section>
  );
}

function FilesPanel({ files }: { files: Api.File[] | null }) {
  const [seen, setSeen] = useState<Api.File | null>(null);
  return (
    <section class="panel flush" aria-label="Artifacts">
      <div class="bar"><h2>Artifacts</h2></div>
      {seen && <PreviewDialog file={seen} close={() => setSeen(null)} />}
      {files === null || files.length === 0 ? <p class="hint">None{files === null ? " loaded yet" : ""}.</p> : (
        <table>
          <tbody>
            {files.map((f) => (
              <tr key={f.path}>
                <td title={`SHA-256 ${f.sha256}`}><button type="button" class="link" onClick={() => attempt(() => download(f.sha256, f.path.split("/").pop() ?? f.path))}>{f.path}</button></td>
                <td class="num">{bytes(f.size)}</td>
                <td class="num"><button type="button" class="link" aria-label={`View ${f.path}`} onClick={() => setSeen(f)}>View</button></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function CurvesPanel({ model, trial }: { model: TrialModel; trial: Api.TrialDetail }) {
  const log = route.value.query.get("y") === "log";
  const series = model.series.value;
  const none = series === null || Object.keys(series).length === 0;
  return (
    <section class="panel" aria-label="Curves" data-metrics={series === null ? 0 : Object.keys(series).length}>
      <div class="bar"><h2>Curves</h2><span class="grow" /><Toggle label="Log scale" on={log} change={(on) => choose({ y: on ? "log" : null })} title="Logarithmic y axes" /></div>
      {none ? <p class={isOpen(trial.state) ? "hint tall room-curves" : "hint"}>{series === null ? "Loading…" : isOpen(trial.state) ? "Nothing was measured yet." : "Nothing was measured."}</p> : <Curves series={series} metric={model.sweep.value?.metric.name ?? ""} log={log} file={`${trial.sweep}-${trial.number}`} />}
    </section>
  );
}

function LogPanel({ model, trial }: { model: TrialModel; trial: Api.TrialDetail }) {
  const log = model.log.value;
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  const [search, setSearch] = useState("");
  const [at, setAt] = useState(0);
  const [opened, setOpened] = useState<Api.File[] | null>(null); // the dialog shows these, also when another attempt begins
  const whole = log === null ? [] : model.outputs.value.filter((f) => f.path.startsWith(`attempt-${log.attempt}/`));
  const places = useMemo(() => placesOf(log?.text ?? "", search), [log?.text, search]);
  const shown = Math.min(at, places.length - 1);
  const next = (by: number) => { if (places.length > 0) setAt((shown + by + places.length) % places.length); };
  useEffect(() => {
    if (box.current && atEnd.current && search === "") box.current.scrollTop = box.current.scrollHeight;
  }, [log?.text]);
  const follow = () => {
    const b = box.current;
    if (b) atEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < 24;
  };
  return (
    <section class="panel flush" aria-label="Output">
      <div class="bar">
        <h2>Output</h2>
        {log && log.attempt > 0 && <span class="faint">attempt {log.attempt}{log.truncated ? ", its last lines" : ""}</span>}
        {whole[0] && <button type="button" class="link" onClick={() => setOpened(whole)}>Whole output ({bytes(whole.reduce((n, f) => n + f.size, 0))})</button>}
        {opened && <WholeLogDialog outputs={opened} title={`Output of ${trial.sweep}/${trial.number}, ${opened[0]!.path.split("/")[0]!.replace("-", " ")}`} close={() => setOpened(null)} />}
        <span class="grow" />
        {log && log.text !== "" && (
          <form class="search" role="search" onSubmit={(e) => { e.preventDefault(); next(1); }}>
            {search !== "" && <span role="status" class="faint">{places.length === 0 ? "not found" : `${count(shown + 1)} of ${count(places.length)}`}</span>}
            <input type="search" aria-label="Search the output" placeholder="Search" value={search} onInput={(e) => { setSearch(e.currentTarget.value); setAt(0); }} onKeyDown={(e) => { if (e.key === "Enter" && e.shiftKey) { e.preventDefault(); next(-1); } }} />
          </form>
        )}
        {trial.attempts.length > 1 && (
          <label class="toggle">Attempt <select value={String(model.logAttempt.value ?? "")} onChange={(e) => model.showLogOf(e.currentTarget.value === "" ? null : Number(e.currentTarget.value))}>
            <option value="">latest</option>{trial.attempts.map((a) => <option key={a.attempt} value={String(a.attempt)}>{a.attempt}</option>)}
          </select></label>
        )}
      </div>
      {log && log.text !== "" ? <pre class="log" ref={box} onScroll={follow} tabIndex={0} aria-label="Last lines of output">{places.length > 0 ? <Found text={log.text} places={places} length={search.length} at={shown} /> : log.text}</pre>
        : <p class="hint">{log === null ? "Loading…" : isOpen(trial.state) ? "It has written nothing yet." : "It wrote nothing."}</p>}
    </section>
  );
}
