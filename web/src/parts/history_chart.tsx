/* The chart of a sweep: every completed trial's value and the best so far, against the trial's number. */
import { useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type * as Api from "../api/types";
import { inOrder, param, sig, toNumber } from "../format";
import { colour } from "../theme";
import { historyOf, positiveOnly, type History } from "./history";
import { axis, Plot, tickText, wholeAxis, type Options } from "./plot";

interface Props {
  sweep: Api.Sweep;
  trials: readonly Api.Trial[];
  log: boolean;
  clip: boolean;
  open: (number: number) => void;
}

const HEIGHT = 300;
const nothing = () => null;

function describe(h: History, trials: readonly Api.Trial[], metric: string): string {
  const best = h.bestAt === null ? undefined : trials[h.bestAt];
  const end = best ? `; the best is ${sig(toNumber(best.value))}, trial ${best.number}` : "";
  return `${metric} of ${h.completed} completed trials against their number, and the best so far${end}. The table below has every value.`;
}

export function HistoryChart({ sweep, trials, log, clip, open }: Props) {
  const { name, goal } = sweep.metric;
  const history = useMemo(() => historyOf(trials, goal, clip), [trials, goal, clip]);
  const state = useRef({ sweep, history, trials, open });
  state.current = { sweep, history, trials, open };
  const logY = log && history.positive;
  const size = trials.length > 2000 ? 3 : trials.length > 500 ? 4.5 : 6;
  const data = useMemo<uPlot.AlignedData>(() => {
    const series = [history.best, history.done, history.steps, logY ? positiveOnly(history.open) : history.open];
    return [history.x, ...series];
  }, [history, logY]);

  const options = (): Options => ({
    scales: {
      x: { time: false, range: (_u, min, max) => (min === null || max === null ? [0, 10] : [min - 0.6, max + 0.6]) },
      y: logY ? { distr: 3 } : { range: (_u, min, max) => (min === null || max === null ? [0, 1] : uPlot.rangeNum(min, max, 0.08, true)) },
    },
    axes: [
      wholeAxis("trial"),
      axis({ size: 56, values: tickText }),
    ],
    series: [
      {},
      { label: "best so far", stroke: colour("--accent"), width: 2, paths: uPlot.paths.stepped?.({ align: 1 }), points: { show: false } },
      { label: name, paths: nothing, points: { show: true, size, width: 0, fill: colour("--point"), stroke: colour("--point") } },
      { label: "new best", paths: nothing, points: { show: true, size: 8, width: 0, fill: colour("--accent"), stroke: colour("--accent") } },
      { label: "not ended", paths: nothing, points: { show: true, size: 7, width: 1.5, fill: colour("--panel"), stroke: colour("--running") } },
    ],
    padding: [12, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: ring(), drag: { x: true, y: false } },
    hooks: { draw: [(u) => drawMarks(u, state.current.history, goal)] },
  });

  return (
    <Plot class="history" height={HEIGHT} data={data} deps={[logY, name, goal, size]} options={options}
      label={describe(history, trials, name)} made={(u) => addTip(u, () => state.current)} />
  );
}

/** A ring around the point under the pointer: completed trials (series 2) and those that run (series 4). */
function ring(): uPlot.Cursor.Points {
  const size = (_: uPlot, series: number) => (series === 2 || series === 4 ? 14 : 0);
  return { size, width: (_, __, px) => (px > 0 ? 2 : 0), fill: () => "transparent", stroke: () => colour("--accent") };
}

/** Failed trials as ticks on the lower edge, values beyond the scale as triangles on the worse edge. */
function drawMarks(u: uPlot, h: History, goal: "minimize" | "maximize"): void {
  const { ctx, bbox } = u;
  const px = devicePixelRatio;
  const place = (at: number) => u.valToPos(h.x[at] ?? 0, "x", true);
  const inside = (x: number) => x >= bbox.left && x <= bbox.left + bbox.width;
  ctx.save();
  ctx.fillStyle = colour("--failed");
  for (const at of h.failed) {
    const x = place(at);
    if (inside(x)) ctx.fillRect(x - px, bbox.top + bbox.height - 9 * px, 2 * px, 9 * px);
  }
  ctx.fillStyle = colour("--point");
  const down = goal === "maximize";
  const edge = down ? bbox.top + bbox.height : bbox.top;
  const tip = (down ? -1 : 1) * 7 * px;
  for (const at of h.beyond) {
    const x = place(at);
    if (!inside(x)) continue;
    ctx.beginPath();
    ctx.moveTo(x, edge);
    ctx.lineTo(x - 4 * px, edge + tip);
    ctx.lineTo(x + 4 * px, edge + tip);
    ctx.fill();
  }
  ctx.restore();
}

interface Current {
  sweep: Api.Sweep;
  history: History;
  trials: readonly Api.Trial[];
  open: (number: number) => void;
}

/** The trial under the pointer: what it is in a box, a click opens it. */
function addTip(u: uPlot, current: () => Current): void {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  u.over.appendChild(tip);
  const under = () => (typeof u.cursor.idx === "number" ? current().trials[u.cursor.idx] : undefined);
  const show = () => {
    const trial = under();
    const left = u.cursor.left ?? -1;
    tip.hidden = !trial || left < 0;
    if (!trial || left < 0) return;
    tip.replaceChildren(...tipLines(trial, current().sweep));
    const right = left > u.over.clientWidth / 2;
    tip.style.left = right ? "" : `${left + 14}px`;
    tip.style.right = right ? `${u.over.clientWidth - left + 14}px` : "";
  };
  (u.hooks.setCursor ??= []).push(show);
  let down = -1;
  u.over.addEventListener("mousedown", (e) => { down = e.clientX; });
  u.over.addEventListener("click", (e) => {
    const trial = under();
    if (trial && Math.abs(e.clientX - down) < 4) current().open(trial.number);
  });
}

function tipLines(trial: Api.Trial, sweep: Api.Sweep): HTMLElement[] {
  const line = (cls: string, key: string, value: string) => {
    const row = document.createElement("div");
    row.className = cls;
    for (const text of [key, value]) row.appendChild(document.createElement("span")).textContent = text;
    return row;
  };
  const params = inOrder(trial.params, sweep).slice(0, 12).map(([k, v]) => line("pair", k, param(v)));
  return [line("head", `#${trial.number} ${trial.state}`, sig(toNumber(trial.value))), ...params];
}
