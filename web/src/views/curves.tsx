/* The curves of one metric of all trials in one chart. Up to some hundreds are lines; of more, the
 * picture of how many pass where, with the best and the highlighted ones as lines. */
import { useMemo, useState } from "preact/hooks";
import type * as Api from "../api/types";
import type { Across, Curve, Curves, CurvesInput } from "../data/points";
import { brushText, filterText, pickedText } from "../data/selection";
import { useJob } from "../data/use_job";
import { count, sig, some } from "../format";
import { useSight } from "../live/lazy_resource";
import { hasEnded, type SweepModel } from "../live/sweep";
import { Figure } from "../parts/figure";
import { drawDensity, drawFrame, frameOf, type Frame } from "../parts/frame";
import { Chips, Toggle } from "../parts/small";
import type { Surface } from "../parts/surface";
import { choose, go, href, route } from "../route";
import { colour } from "../theme";

const HEIGHT = 340;
const REACH_PX = 14;
const LINES_AT_ONCE = 20;
const MOST_LISTED = 20;

const ACROSS: { id: Across; label: string; title: string }[] = [
  { id: "step", label: "Step", title: "Against the step" }, { id: "time", label: "Relative time", title: "Against the time since the attempt began" }, { id: "clock", label: "Wall clock", title: "Against the time of day" },
];

function choices(): Pick<CurvesInput, "across" | "logX" | "logY" | "smooth"> {
  const { query } = route.value;
  const smooth = Number(query.get("smooth") ?? 0);
  return { across: ACROSS.find((a) => a.id === query.get("across"))?.id ?? "step", logX: query.get("curvex") === "log", logY: query.get("curvey") === "log", smooth: smooth > 0 && smooth < 1 ? smooth : 0 };
}

/** Metrics with curves: the objectives first, then the others that trials reported. */
export function metricsOf(sweep: Api.Sweep, columns: Iterable<string>): string[] {
  return [...new Set([...sweep.metrics.map((m) => m.name), ...sweep.constraints.map((c) => c.metric), ...[...columns].filter((c) => c.startsWith("metric:")).map((c) => c.slice(7))])];
}

export function CurvesPanel({ model, sweep }: { model: SweepModel; sweep: Api.Sweep }) {
  const table = model.trials.table.value;
  const metrics = useMemo(() => metricsOf(sweep, table.columns.keys()), [sweep, table]);
  const metric = metrics.find((m) => m === route.value.query.get("curve")) ?? sweep.metric.name;
  const resource = useMemo(() => model.pointsOf(metric), [model, metric]);
  const element = useSight<HTMLElement>(resource);
  const version = resource.value.value;
  const failed = resource.refresher.error.value;
  const { done, error } = useJob(model.trials, "curves", { metric, version: version ?? "", ...choices(), goal: sweep.metrics.find((m) => m.name === metric)?.goal ?? null, filter: filterText.value, brush: brushText.value, picked: pickedText.value }, resource.inSight.value && version !== null);
  const curves = version === null || done?.output.y.label !== metric ? null : done.output; // not those of the metric before
  const { across, logX, logY, smooth } = choices();
  return (
    <section class="panel all-curves" aria-label="Curves of all trials" ref={element} data-curves={curves?.count ?? 0} data-lines={curves?.curves.length ?? 0}>
      <div class="bar">
        <h2>Curves of all trials</h2>
        {metrics.length > 1 && <label class="toggle">Metric <select value={metric} onChange={(e) => choose({ curve: e.currentTarget.value === sweep.metric.name ? null : e.currentTarget.value })}>{metrics.map((m) => <option key={m} value={m}>{m}</option>)}</select></label>}
        <Chips label="Across" chosen={across} options={ACROSS.map(({ id, label }) => ({ id, label }))} choose={(id) => choose({ across: id === "step" ? null : id })} />
        <span class="grow" />
        <label class="toggle">Smooth <input type="range" min={0} max={0.98} step={0.02} value={smooth} aria-valuetext={smooth === 0 ? "none" : String(smooth)} onInput={(e) => choose({ smooth: Number(e.currentTarget.value) === 0 ? null : e.currentTarget.value })} /></label>
        <Toggle label="Log x" on={logX} change={(on) => choose({ curvex: on ? "log" : null })} />
        <Toggle label="Log y" on={logY} change={(on) => choose({ curvey: on ? "log" : null })} />
      </div>
      {failed !== null && <p class="stale" role="status">{version === null ? "Not known" : "Not up to date"}: {failed}</p>}
      {error !== null && <p class="stale" role="status">Not up to date: {error}</p>}
      {curves === null ? <p class="hint tall">{failed === null && resource.inSight.value && "Loading…"}</p> : curves.count === 0 ? <p class={hasEnded(sweep.state) ? "hint" : "hint tall"}>{table.n === 0 ? (sweep.counts.total > 0 ? "Loading…" : "No trials yet.") : filterText.value !== "" ? `No trial that passes the filter has a curve of ${metric}.` : hasEnded(sweep.state) ? `No trial has a curve of ${metric}.` : `No point of ${metric} has come yet.`}</p>
        : <Drawn model={model} sweep={sweep} curves={curves} metric={metric} input={() => ({ metric, version: version ?? "", ...choices(), goal: null, filter: filterText.value, brush: brushText.value, picked: pickedText.value })} />}
    </section>
  );
}

function Drawn({ model, sweep, curves, metric, input }: { model: SweepModel; sweep: Api.Sweep; curves: Curves; metric: string; input: () => CurvesInput }) {
  const [under, setUnder] = useState<{ curve: Curve; at: number } | null>(null);
  const draw = useMemo(() => (s: Surface) => drawCurves(s, curves, under?.curve ?? null), [curves, under?.curve]);
  const point = (e: PointerEvent, x: number, y: number, width: number) => {
    const found = e.type === "pointerleave" ? null : nearestCurve(curves.curves, frameOf(width, HEIGHT), x, y);
    setUnder(found);
    if (e.type === "pointerup" && found) go(["sweeps", sweep.id, "trials", found.curve.number]);
  };
  const { marked, count: all, stopped, density } = curves;
  const label = `${metric} of ${some(all, "trial")} against the ${curves.x.label}${stopped > 0 ? `; ${count(stopped)} of them were stopped early, failed or were cancelled` : ""}. The list below has the ends of the best ones.`;
  const notes = [
    density && (marked === null ? `Many curves: the darker a place, the more of the ${count(all)} pass it. The best one is a line.` : `Many curves: highlighted ones are lines${curves.curves.length < marked ? ` (${count(curves.curves.length)} of ${count(marked)})` : ""}, the others are shown by how many pass.`),
    curves.hidden > 0 && `${count(curves.hidden)} points cannot be shown on these axes.`,
    curves.timeless && curves.x.label !== "step" && "Points from before the server kept their times are missing.",
  ].filter((n) => n !== null && n !== false);
  return (
    <>
      <p class="faint caption" aria-hidden="true">{under ? `#${under.curve.number} ${under.curve.state}: ${pointText(curves, under.curve, under.at)}` : <>{some(all, "curve")}{stopped > 0 && <>, <i class="swatch stopped-line" />{count(stopped)} stopped</>}{marked !== null && <>, <b>{count(marked)}</b> highlighted</>}</>}</p>
      <Figure class="pointed" label={label} height={HEIGHT} draw={draw} file={`${sweep.id}-curves`} csv={() => model.trials.run("curvesCsv", input())} onPointer={point} />
      <p class="note kept">{notes.join(" ")}</p>
      <Ends sweep={sweep} curves={curves} />
    </>
  );
}

/** The ends of the curves that are drawn in full, the best first. */
function Ends({ sweep, curves }: { sweep: Api.Sweep; curves: Curves }) {
  const listed = curves.curves.slice(curves.strong).slice(-MOST_LISTED).reverse();
  return (
    <details class="ranges">
      <summary>Ends of the curves</summary>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Ends of the curves">
        <table>
          <thead><tr><th scope="col" class="num">Trial</th><th scope="col">State</th><th scope="col" class="num">{curves.x.label}</th><th scope="col" class="num">{curves.y.label}</th></tr></thead>
          <tbody>{listed.map((c) => <tr key={c.number}><td class="num"><a href={href(["sweeps", sweep.id, "trials", c.number])}>#{c.number}</a></td><td>{c.state}</td><td class="num">{sig(c.last.at)}</td><td class="num" title={String(c.last.value)}>{sig(c.last.value)}</td></tr>)}</tbody>
        </table>
      </div>
    </details>
  );
}

const inverse = (a: Curves["x"], place: number) => (a.log ? a.min * (a.max / a.min) ** place : a.min + place * (a.max - a.min));
const pointText = (curves: Curves, c: Curve, at: number) => `${curves.x.label} ${sig(inverse(curves.x, c.x[at]!))}, ${curves.y.label} ${sig(inverse(curves.y, c.y[at]!))}`;

/** The line nearest to the pointer, with its nearest point. */
function nearestCurve(all: readonly Curve[], f: Frame, x: number, y: number): { curve: Curve; at: number } | null {
  let [found, least]: [{ curve: Curve; at: number } | null, number] = [null, REACH_PX ** 2];
  for (const curve of all) {
    for (let i = 0; i < curve.x.length; i++) {
      const far = (f.px(curve.x[i]!) - x) ** 2 + (f.py(curve.y[i]!) - y) ** 2;
      if (far <= least) [found, least] = [{ curve, at: i }, far];
    }
  }
  return found;
}

function* drawCurves(s: Surface, { x, y, curves, strong, density, marked }: Curves, under: Curve | null): Generator<void> {
  const f = frameOf(s.width, s.height);
  drawFrame(s, f, x, y);
  const [stopped, accent, point, text] = [colour("--point-faint"), colour("--accent"), colour("--point"), colour("--text")];
  s.clip(f);
  if (density) drawDensity(s, f, density, () => point, 0.85);
  yield;
  const one = (c: Curve, stroke: string, width: number, alpha: number) => {
    const [xs, ys] = [Array.from(c.x, f.px), Array.from(c.y, f.py)];
    if (c.x.length === 1) s.dot(xs[0]!, ys[0]!, 2, stroke, alpha);
    else s.line(xs, ys, stroke, width, alpha);
  };
  const full = curves.length - strong;
  for (let i = 0; i < curves.length; i++) {
    const isBest = marked === null && i === curves.length - 1;
    if (i < strong) one(curves[i]!, stopped, 1, 0.45);
    else one(curves[i]!, isBest || marked !== null ? accent : point, isBest ? 2 : 1.25, isBest ? 1 : Math.max(0.35, Math.min(0.9, 40 / full)));
    if (i % LINES_AT_ONCE === 0) yield;
  }
  if (under) one(under, text, 2.25, 1);
  s.clip(null);
}
