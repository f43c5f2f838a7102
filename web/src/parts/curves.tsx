/* The series of a trial. Related metrics share a chart, such as train_loss and val_loss. */
import { useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import type * as Api from "../api/types";
import { sig, toNumber } from "../format";
import { colour } from "../theme";
import { csvOf } from "./csv";
import { Downloads } from "./downloads";
import { positiveOnly } from "./history";
import { axis, Plot, tickText, wholeAxis, type Options } from "./plot";
import { pictureOf } from "./plot_picture";

const HEIGHT = 210;
const SPLIT = /^(train(?:ing)?|val(?:id(?:ation)?)?|test|eval)[_/.\-]/;
const COLOURS = 6; // --series-1 to --series-6 of the style sheet
const colourOf = (i: number) => colour(`--series-${(i % COLOURS) + 1}`);

type Series = Api.Series["series"];

export interface Group {
  name: string;
  metrics: string[];
}

/** Metrics grouped by their names without train_ or val_. The group of the sweep's metric comes
 * first, then groups of several metrics. */
export function groupMetrics(names: string[], first: string): Group[] {
  const groups = new Map<string, string[]>();
  for (const name of [...names].sort()) {
    const rest = name.replace(SPLIT, "");
    groups.set(rest, [...(groups.get(rest) ?? []), name]);
  }
  const all = [...groups].map(([name, metrics]) => ({ name, metrics }));
  const rank = (g: Group) => (g.metrics.includes(first) ? 0 : g.metrics.length > 1 ? 1 : 2);
  return all.sort((a, b) => rank(a) - rank(b));
}

/** All series of a group over the union of their steps; a value that cannot be drawn is null. */
export function align(series: Series, metrics: string[]): [number[], ...(number | null)[][]] {
  const steps = [...new Set(metrics.flatMap((m) => series[m]?.steps ?? []))].sort((a, b) => a - b);
  const rows = metrics.map((m) => {
    const at = new Map<number, number>();
    series[m]?.steps.forEach((step, i) => {
      const v = toNumber(series[m]?.values[i]);
      if (v !== null && Number.isFinite(v)) at.set(step, v);
    });
    return steps.map((s) => at.get(s) ?? null);
  });
  return [steps, ...rows];
}

export function Curves({ series, metric, log, file }: { series: Series; metric: string; log: boolean; file: string }) {
  const names = Object.keys(series);
  const groups = useMemo(() => groupMetrics(names, metric), [names.join("\n"), metric]);
  return <div class="curves">{groups.map((g) => <Curve key={g.metrics.join()} group={g} series={series} log={log} file={file} />)}</div>;
}

function Curve({ group, series, log, file }: { group: Group; series: Series; log: boolean; file: string }) {
  const plot = useRef<uPlot | null>(null);
  const aligned = useMemo(() => align(series, group.metrics), [series, group]);
  const [at, setAt] = useState<number | null>(null);
  const [steps, ...rows] = aligned;
  const logY = log && rows.some((r) => r.some((v) => v !== null && v > 0));
  const data = useMemo<uPlot.AlignedData>(() => [steps, ...(logY ? rows.map(positiveOnly) : rows)], [aligned, logY]);
  const few = steps.length < 40;
  const options = (): Options => ({
    // Without this, a single measurement would be at the left end of a hundred steps.
    scales: { x: { time: false, range: (u, min, max) => { const [one = 0, another] = u.data[0]; return another === undefined ? [one - 1, one + 1] : [min, max]; } }, y: logY ? { distr: 3 } : {} },
    axes: [wholeAxis("step"), axis({ size: 56, values: tickText })],
    series: [
      {},
      ...group.metrics.map((m, i) => ({ label: m, stroke: colourOf(i), width: 1.75, spanGaps: true, points: { show: few, size: 4 } })),
    ],
    padding: [8, 14, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false }, sync: { key: "steps" } },
    hooks: { setCursor: [(u) => setAt(u.cursor.idx ?? null)] },
  });
  // The reported value, even if it cannot be drawn: a curve that ended in NaN shows NaN.
  const last = (i: number) => toNumber(series[group.metrics[i] ?? ""]?.values.at(-1));
  const summary = group.metrics.map((m, i) => `${m} ${sig(last(i))}`).join(", ");
  const label = `${group.metrics.join(" and ")} over ${steps.length} steps; last: ${summary}`;
  const nothing = () => undefined;
  const picture = () => (plot.current ? pictureOf(plot.current, group.metrics.map((_, i) => ({ line: "straight" as const, stroke: colourOf(i), width: 1.75, ...(few ? { dots: 2 } : {}) })), group.metrics.map((m, i): [string, string] => [m, colourOf(i)]), nothing, nothing) : null);
  return (
    <figure>
      <figcaption>
        {group.metrics.map((m, i) => (
          <span key={m}><i class={`swatch swatch-${(i % COLOURS) + 1}`} aria-hidden="true" />{m} <b>{sig(at === null ? last(i) : rows[i]?.[at] ?? null)}</b></span>
        ))}
        <span class="faint">{at === null ? "last" : `step ${steps[at] ?? ""}`}</span>
      </figcaption>
      <Plot height={HEIGHT} data={data} deps={[logY, few, group]} options={options} label={label} made={(u) => { plot.current = u; }} />
      <Downloads label={label} file={`${file}-${group.name}`} picture={picture} csv={() => csvOf(["step", ...group.metrics], steps.map((step, i) => [step, ...rows.map((r) => r[i] ?? null)]))} />
    </figure>
  );
}
