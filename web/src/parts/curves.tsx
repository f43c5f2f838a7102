/* The series of a trial, one chart for what belongs together: train_loss and val_loss share one. */
import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import type * as Api from "../api/types";
import { sig, toNumber } from "../format";
import { colour } from "../theme";
import { positiveOnly } from "./history";
import { axis, Plot, tickText, type Options } from "./plot";

const HEIGHT = 210;
const SPLIT = /^(train(?:ing)?|val(?:id(?:ation)?)?|test|eval)[_/.\-]/;
const COLOURS = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];

type Series = Api.Series["series"];

export interface Group {
  name: string;
  metrics: string[];
}

/** Metrics by what is left of their names without train_ or val_; the group of the sweep's metric first. */
export function groupMetrics(names: string[], first: string): Group[] {
  const groups = new Map<string, string[]>();
  for (const name of [...names].sort()) {
    const rest = name.replace(SPLIT, "");
    groups.set(rest, [...(groups.get(rest) ?? []), name]);
  }
  const all = [...groups].map(([name, metrics]) => ({ name, metrics }));
  return [...all.filter((g) => g.metrics.includes(first)), ...all.filter((g) => !g.metrics.includes(first))];
}

/** All series of a group over the union of their steps; what cannot be drawn is null. */
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

export function Curves({ series, metric, log }: { series: Series; metric: string; log: boolean }) {
  const names = Object.keys(series);
  const groups = useMemo(() => groupMetrics(names, metric), [names.join("\n"), metric]);
  return <div class="curves">{groups.map((g) => <Curve key={g.metrics.join()} group={g} series={series} log={log} />)}</div>;
}

function Curve({ group, series, log }: { group: Group; series: Series; log: boolean }) {
  const aligned = useMemo(() => align(series, group.metrics), [series, group]);
  const [steps, ...rows] = aligned;
  const logY = log && rows.some((r) => r.some((v) => v !== null && v > 0));
  const data = useMemo<uPlot.AlignedData>(() => [steps, ...(logY ? rows.map(positiveOnly) : rows)], [aligned, logY]);
  const few = steps.length < 40;
  const options = (): Options => ({
    scales: { x: { time: false }, y: logY ? { distr: 3 } : {} },
    axes: [axis({ label: "step", values: tickText }), axis({ size: 58, values: tickText })],
    series: [
      { label: "step" },
      ...group.metrics.map((m, i) => ({
        label: m, stroke: colour(COLOURS[i % COLOURS.length] ?? "--accent"), width: 1.75, spanGaps: true, points: { show: few, size: 4 },
        value: (_: uPlot, v: number | null) => sig(v),
      })),
    ],
    cursor: { y: false, drag: { x: true, y: false }, sync: { key: "steps" } },
  });
  const last = group.metrics.map((m, i) => `${m} ${sig(rows[i]?.filter((v) => v !== null).pop() ?? null)}`).join(", ");
  return (
    <figure>
      <figcaption>{group.metrics.length === 1 ? group.metrics[0] : group.name}</figcaption>
      <Plot height={HEIGHT} data={data} deps={[logY, few, group]} options={options} label={`${group.metrics.join(" and ")} over ${steps.length} steps; last: ${last}`} />
    </figure>
  );
}
