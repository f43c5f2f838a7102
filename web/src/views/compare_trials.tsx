/* Trials of one or several sweeps side by side: what differs first, curves in one chart, the ends of
 * their outputs, files. */
import { useMemo } from "preact/hooks";
import { download } from "../api/http";
import type * as Api from "../api/types";
import { bytes, count, duration, inOrder, own, param, sig, toNumber, valueText } from "../format";
import { formatTrials, keyOf, MOST_COMPARED, parseTrials, ComparedModel, type Compared } from "../live/compared";
import { useModel } from "../live/model";
import { csvOf } from "../parts/csv";
import { save } from "../parts/downloads";
import { Figure } from "../parts/figure";
import { drawFrame, frameOf } from "../parts/frame";
import { judgedBy } from "../parts/objectives";
import { axisBetween, placeOf } from "../parts/scale_of";
import { attempt, Empty, Loading, ranFor, State, Toggle } from "../parts/small";
import type { Surface } from "../parts/surface";
import { choose, href, route } from "../route";
import { colour } from "../theme";

const COLOURS = 6; // --series-1 to --series-6 of the style sheet
const HEIGHT = 320;

export function CompareTrialsView() {
  const asked = route.value.query.get("of") ?? "";
  const ids = useMemo(() => parseTrials(asked), [asked]);
  if (ids.length === 0) return <main><h1>Compare trials</h1><Empty title="No trial is chosen"><p>Select trials in the table of a sweep, and choose “Compare” there.</p><p><a href={href(["sweeps"])}>All sweeps</a></p></Empty></main>;
  return <Comparison key={asked} asked={asked} />;
}

function Comparison({ asked }: { asked: string }) {
  const model = useModel(() => new ComparedModel(parseTrials(asked)), `compare ${asked}`);
  const trials = model.trials.value;
  const missing = model.missing.value;
  return (
    <main>
      <div class="head"><nav aria-label="Where this is"><a href={href(["sweeps"])}>Sweeps</a><span aria-hidden="true">/</span></nav><h1>Compare {count(parseTrials(asked).length)} trials</h1></div>
      <Loading of={model.refresher} ready={trials !== null}>
        {missing.length > 0 && <p class="stale" role="status">Not there: {missing.map((id) => `#${id.number} of ${id.sweep}`).join(", ")}.</p>}
        {trials !== null && trials.length > 0 && (
          <>
            <ValuesPanel trials={trials} />
            <CurvesPanel trials={trials} />
            <LogsPanel trials={trials} />
            <FilesPanel trials={trials} />
          </>
        )}
      </Loading>
    </main>
  );
}

/** The names of trials: the number alone where all are of one sweep. */
function nameIn(trials: readonly Compared[]): (t: Compared) => string {
  const one = new Set(trials.map((t) => t.id.sweep)).size === 1;
  return (t) => (one ? `#${t.id.number}` : `${t.id.sweep} #${t.id.number}`);
}

interface Line {
  name: string;
  cells: { text: string; full: string }[];
  differs: boolean;
}

const lineOf = (name: string, trials: readonly Compared[], cell: (t: Compared) => { text: string; full: string }): Line => {
  const cells = trials.map(cell);
  return { name, cells, differs: new Set(cells.map((c) => c.full)).size > 1 };
};

function parametersOf(trials: readonly Compared[]): Line[] {
  const names = [...new Set(trials.flatMap((t) => inOrder(t.trial.params, t.sweep).map(([name]) => name)))];
  const lines = names.map((name) => lineOf(name, trials, (t) => { const v = own(t.trial.params, name); return v === undefined ? { text: "–", full: "" } : { text: param(v), full: valueText(v) }; }));
  return [...lines.filter((l) => l.differs), ...lines.filter((l) => !l.differs)];
}

function resultsOf(trials: readonly Compared[]): Line[] {
  const names = [...new Set(trials.flatMap((t) => judgedBy(t.sweep)))];
  const number = (v: Api.Number | null | undefined) => ({ text: sig(toNumber(v)), full: String(v ?? "") });
  return [
    ...names.map((name) => lineOf(name, trials, (t) => number(own(t.trial.metrics, name) ?? (name === t.sweep.metric.name ? t.trial.value : null)))),
    lineOf("Step", trials, (t) => number(t.trial.step ?? null)),
    lineOf("Ran", trials, (t) => { const ms = ranFor(t.trial); return { text: duration(ms), full: String(ms ?? "") }; }),
    lineOf("Attempts", trials, (t) => ({ text: String(t.trial.attempt), full: String(t.trial.attempt) })),
    lineOf("Runner", trials, (t) => { const r = t.trial.runner ?? t.trial.client ?? "–"; return { text: r, full: r }; }),
  ];
}

function ValuesPanel({ trials }: { trials: readonly Compared[] }) {
  const parameters = parametersOf(trials);
  const results = resultsOf(trials);
  const differing = parameters.filter((l) => l.differs).length;
  const name = nameIn(trials);
  const csv = () => csvOf(["", ...trials.map((t) => keyOf(t.id))], [...results, ...parameters].map((l) => [l.name, ...l.cells.map((c) => c.full)]));
  const row = (l: Line) => <tr key={l.name} class={l.differs ? "differs" : ""}><th scope="row">{l.name}</th>{l.cells.map((c, i) => <td key={i} title={c.full}>{c.text}</td>)}</tr>;
  return (
    <section class="panel" aria-label="Values" data-differing={differing}>
      <div class="bar"><h2>Values <small>{differing} of {parameters.length} parameters differ</small></h2><span class="grow" /><button type="button" class="quiet" onClick={() => save(new Blob([csv()], { type: "text/csv" }), "trials.csv")}>Save CSV</button></div>
      <div class="scroll whole" tabIndex={0} role="region" aria-label="Values of the trials">
        <table class="compared">
          <thead><tr><td />{trials.map((t, i) => <th key={keyOf(t.id)} scope="col"><i class={`swatch swatch-${(i % COLOURS) + 1}`} aria-hidden="true" /><a href={href(["sweeps", t.id.sweep, "trials", t.id.number])}>{name(t)}</a> <button type="button" class="quiet" aria-label={`Leave out ${name(t)}`} title="Leave it out" onClick={() => choose({ of: formatTrials(trials.filter((o) => o !== t).map((o) => o.id)) })}>×</button></th>)}</tr></thead>
          <tbody>
            <tr><th scope="row">State</th>{trials.map((t) => <td key={keyOf(t.id)}><State state={t.trial.state} /></td>)}</tr>
            {results.map(row)}
          </tbody>
          <tbody>
            <tr class="part"><th scope="rowgroup" colSpan={trials.length + 1}>Parameters</th></tr>
            {parameters.map(row)}
          </tbody>
        </table>
      </div>
      {trials.length >= MOST_COMPARED && <p class="note">At most {MOST_COMPARED} trials are compared at once.</p>}
    </section>
  );
}

function CurvesPanel({ trials }: { trials: readonly Compared[] }) {
  const metrics = [...new Set([...trials.flatMap((t) => judgedBy(t.sweep)), ...trials.flatMap((t) => Object.keys(t.series))])].filter((m) => trials.some((t) => own(t.series, m)));
  const metric = metrics.find((m) => m === route.value.query.get("metric")) ?? metrics[0];
  const log = route.value.query.get("y") === "log";
  const drawing = useMemo(() => (metric === undefined ? null : drawingOf(trials, metric, log)), [trials, metric, log]);
  const name = nameIn(trials);
  if (metric === undefined || drawing === null) return <section class="panel" aria-label="Curves"><div class="bar"><h2>Curves</h2></div><p class="hint">None of them was measured.</p></section>;
  function* rows() {
    for (const t of trials) { const s = own(t.series, metric!); for (let i = 0; i < (s?.steps.length ?? 0); i++) yield [t.id.sweep, t.id.number, s!.steps[i]!, s!.values[i]!]; }
  }
  const ends = trials.map((t) => `${name(t)} ${sig(toNumber(own(t.series, metric)?.values.at(-1)))}`).join(", ");
  return (
    <section class="panel" aria-label="Curves" data-curves={trials.filter((t) => own(t.series, metric)).length}>
      <div class="bar">
        <h2>Curves</h2>
        <label class="toggle">Metric <select value={metric} onChange={(e) => choose({ metric: e.currentTarget.value })}>{metrics.map((m) => <option key={m} value={m}>{m}</option>)}</select></label>
        <ul class="legend swatches">{trials.map((t, i) => <li key={keyOf(t.id)}><i class={`swatch swatch-${(i % COLOURS) + 1}`} aria-hidden="true" />{name(t)}</li>)}</ul>
        <span class="grow" />
        <Toggle label="Log scale" on={log} change={(on) => choose({ y: on ? "log" : null })} title="Logarithmic y axis" />
      </div>
      <Figure label={`${metric} of ${trials.length} trials over their steps; last: ${ends}`} height={HEIGHT} draw={drawing} file="trials-curves" csv={() => csvOf(["sweep", "number", "step", metric], rows())} />
    </section>
  );
}

function drawingOf(trials: readonly Compared[], metric: string, log: boolean): (s: Surface) => void {
  const lines = trials.map((t) => { const s = own(t.series, metric); return { x: s?.steps ?? [], y: (s?.values ?? []).map((v) => toNumber(v) ?? NaN) }; });
  let [lowX, highX, lowY, highY] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x, y } of lines) y.forEach((v, i) => { if (Number.isFinite(v) && (!log || v > 0)) [lowX, highX, lowY, highY] = [Math.min(lowX, x[i]!), Math.max(highX, x[i]!), Math.min(lowY, v), Math.max(highY, v)]; });
  const [ax, ay] = [axisBetween("step", lowX, highX, false), axisBetween(metric, lowY, highY, log && lowY > 0)];
  return (s) => {
    const f = frameOf(s.width, s.height);
    drawFrame(s, f, ax, ay);
    s.clip(f);
    lines.forEach(({ x, y }, i) => {
      const stroke = colour(`--series-${(i % COLOURS) + 1}`);
      const ys = y.map((v) => (Number.isFinite(v) ? f.py(placeOf(ay, v)) : NaN));
      const xs = x.map((v) => f.px(placeOf(ax, v)));
      s.line(xs, ys, stroke, i < COLOURS ? 1.75 : 1, 1);
      if (y.length < 40) xs.forEach((at, j) => { if (!Number.isNaN(ys[j]!)) s.dot(at, ys[j]!, 2, stroke, 1); });
    });
    s.clip(null);
  };
}

function LogsPanel({ trials }: { trials: readonly Compared[] }) {
  const name = nameIn(trials);
  return (
    <section class="panel flush" aria-label="Outputs">
      <div class="bar"><h2>Outputs <small>their last lines</small></h2></div>
      <div class="beside-each-other">
        {trials.map((t) => (
          <div key={keyOf(t.id)}>
            <h3>{name(t)}{t.log.attempt > 1 && <small> attempt {t.log.attempt}</small>}{t.log.truncated && <small> the beginning was dropped</small>}</h3>
            {t.log.text === "" ? <p class="hint">It wrote nothing.</p> : <pre class="log" tabIndex={0} aria-label={`Last lines of output of ${name(t)}`}>{t.log.text}</pre>}
          </div>
        ))}
      </div>
    </section>
  );
}

function FilesPanel({ trials }: { trials: readonly Compared[] }) {
  const paths = [...new Set(trials.flatMap((t) => t.files.map((f) => f.path)))].sort();
  const name = nameIn(trials);
  return (
    <section class="panel" aria-label="Artifacts" data-files={paths.length}>
      <div class="bar"><h2>Artifacts</h2></div>
      {paths.length === 0 ? <p class="hint">None of them left files.</p> : (
        <div class="scroll whole" tabIndex={0} role="region" aria-label="Files of the trials">
          <table class="compared">
            <thead><tr><td />{trials.map((t) => <th key={keyOf(t.id)} scope="col">{name(t)}</th>)}</tr></thead>
            <tbody>
              {paths.map((path) => {
                const files = trials.map((t) => t.files.find((f) => f.path === path));
                const same = files.every((f) => f !== undefined && f.sha256 === files[0]?.sha256);
                return <tr key={path}><th scope="row">{path}{same && trials.length > 1 && <small> the same</small>}</th>{files.map((f, i) => <td key={i} title={f && `SHA-256 ${f.sha256}`}>{f ? <button type="button" class="link" aria-label={`${bytes(f.size)}, ${path} of ${name(trials[i]!)}`} onClick={() => attempt(() => download(f.sha256, path.split("/").pop() ?? path))}>{bytes(f.size)}</button> : "–"}</td>)}</tr>;
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
