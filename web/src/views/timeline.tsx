/* Where and when the trials of a sweep ran: a lane for each slot of a runner, a box for each attempt or
 * seat. */
import { useMemo, useState } from "preact/hooks";
import type * as Api from "../api/types";
import { brushText, filterText, pickedText } from "../data/selection";
import type { Box, Timeline } from "../data/timeline";
import { useJob } from "../data/use_job";
import { clock, count, cut, duration, some } from "../format";
import { useSight } from "../live/lazy_resource";
import type { SweepModel } from "../live/sweep";
import { Figure } from "../parts/figure";
import { PartButtons } from "../parts/part_buttons";
import { shortGroup } from "../parts/small";
import type { Surface } from "../parts/surface";
import { choose, go, route } from "../route";
import { colour } from "../theme";

const LEFT = 120;
const RIGHT = 10;
const TOP = 26;
const BOXES_AT_ONCE = 1000;
const ROOM_PX = 168; // of all lanes, also before their number is known: nothing below moves
const LEAST_DRAG_PX = 6;

const COLOURS: Record<string, string> = { completed: "--completed", pruned: "--pruned", failed: "--failed", cancelled: "--cancelled", running: "--running", paused: "--paused", lost: "--failed", timeout: "--pruned", retry: "--pruned", released: "--queued", left: "--queued" };
const colourOf = (outcome: string) => COLOURS[outcome] ?? "--point";

const numberOf = (name: string): number | null => { const text = route.value.query.get(name); return text !== null && Number.isFinite(Number(text)) ? Number(text) : null; };

export function TimelinePanel({ model, sweep }: { model: SweepModel; sweep: Api.Sweep }) {
  const element = useSight<HTMLElement>(model.attempts);
  const version = model.attempts.value.value;
  const failed = model.attempts.refresher.error.value;
  const [from, to] = [numberOf("from"), numberOf("to")];
  const { done, error } = useJob(model.trials, "timeline", { version: version ?? "", from, to, filter: filterText.value, brush: brushText.value, picked: pickedText.value }, model.attempts.inSight.value && version !== null);
  const timeline = version === null ? null : done?.output ?? null;
  const [first, last] = timeline && timeline.runs > 0 ? [timeline.first, timeline.last] : [0, 0];
  return (
    <section class="panel timeline" aria-label="Timeline" ref={element} data-runs={timeline?.runs ?? 0} data-lanes={timeline?.lanes ?? 0}>
      <div class="bar">
        <h2>Timeline <small>slots and trials as they ran</small></h2>
        <ul class="legend">{(timeline?.outcomes ?? []).map((o) => <li key={o} class={`state-${o}`}><i aria-hidden="true" class="box" />{o}</li>)}</ul>
        <span class="grow" />
        <PartButtons label="Part of the time" first={first} last={last} from={from ?? first} to={to ?? last} least={1} choose={(part) => choose({ from: part && String(part[0]), to: part && String(part[1]) })} />
      </div>
      {failed !== null && <p class="stale" role="status">{version === null ? "Not known" : "Not up to date"}: {failed}</p>}
      {error !== null && <p class="stale" role="status">Not up to date: {error}</p>}
      {timeline === null ? <p class="hint tall room-timeline">{failed === null && model.attempts.inSight.value && "Loading…"}</p> : timeline.runs === 0 ? <p class="hint tall room-timeline">{filterText.value === "" ? "Nothing has run yet." : "No trial that ran passes the filter."}</p>
        : <Drawn model={model} sweep={sweep} timeline={timeline} from={from ?? timeline.first} to={to ?? timeline.last} />}
    </section>
  );
}

function Drawn({ model, sweep, timeline, from, to }: { model: SweepModel; sweep: Api.Sweep; timeline: Timeline; from: number; to: number }) {
  const [under, setUnder] = useState<Box | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const thick = Math.max(5, Math.min(48, Math.floor(ROOM_PX / Math.max(1, timeline.lanes))));
  const height = TOP + Math.max(ROOM_PX, thick * timeline.lanes) + 8;
  const draw = useMemo(() => (s: Surface) => drawTimeline(s, timeline, from, to, thick), [timeline, from, to, thick]);
  const point = (e: PointerEvent, x: number, y: number, width: number) => {
    const inner = Math.max(LEFT, Math.min(width - RIGHT, x));
    const timeAt = (px: number) => from + ((px - LEFT) / (width - LEFT - RIGHT)) * (to - from);
    const found = e.type === "pointerleave" ? null : boxAt(timeline.boxes, timeAt(x), (y - TOP) / thick, (2 * (to - from)) / (width - LEFT - RIGHT));
    setUnder(found);
    if (e.type === "pointerdown" && x >= LEFT) {
      (e.currentTarget as Element).setPointerCapture(e.pointerId);
      setDrag({ from: inner, to: inner });
    } else if (drag && e.type === "pointermove") setDrag({ ...drag, to: inner });
    else if (drag && e.type === "pointerup") {
      setDrag(null);
      const [low, high] = [Math.min(drag.from, inner), Math.max(drag.from, inner)];
      if (high - low >= LEAST_DRAG_PX) choose({ from: String(Math.round(timeAt(low))), to: String(Math.round(timeAt(high))) });
      else if (found?.run) go(["sweeps", sweep.id, "trials", found.run.trial]);
    }
  };
  const ran = `${some(timeline.attempts, "attempt")}${timeline.seats > 0 ? ` with ${some(timeline.seats, "seat")}` : ""}`;
  const label = `${ran} in ${some(timeline.lanes, "lane")} of ${some(timeline.places.length, "runner")}, from ${clock(new Date(from).toISOString())} to ${clock(new Date(to).toISOString())}. The list below has each runner.`;
  return (
    <>
      <p class="faint caption" aria-hidden="true">{under === null ? `${ran}. Drag to see a part of the time.` : said(under, sweep.id)}</p>
      <div class="scroll lanes" tabIndex={0} role="region" aria-label="Lanes">
        <Figure class="pointed" label={label} height={height} draw={draw} file={`${sweep.id}-timeline`} csv={() => model.trials.run("timelineCsv", null)} onPointer={point}>
          {drag && <i class="dragged" style={{ left: `${Math.min(drag.from, drag.to)}px`, width: `${Math.abs(drag.from - drag.to)}px`, top: `${TOP}px`, height: `${thick * timeline.lanes}px` }} />}
        </Figure>
      </div>
      {timeline.left > 0 && <p class="note">{count(timeline.left)} attempts of further runners are not drawn.</p>}
      <details class="ranges">
        <summary>Runners</summary>
        <div class="scroll tall" tabIndex={0} role="region" aria-label="Lanes of each runner">
          <table class="compared">
            <thead><tr><th scope="col">Runner</th><th scope="col" class="num">Lanes</th><th scope="col" class="num">Attempts</th><th scope="col" class="num" title="Of the time from its first attempt to the end of its last one">Busy</th></tr></thead>
            <tbody>{timeline.places.map((p) => <tr key={p.name}><th scope="row">{p.name}</th><td class="num">{count(p.lanes)}</td><td class="num">{count(p.runs)}</td><td class="num">{Math.round(100 * p.busy)} %</td></tr>)}</tbody>
          </table>
        </div>
      </details>
    </>
  );
}

function said({ run, count: n, began, ended, outcome }: Box, sweep: string): string {
  const time = `${clock(new Date(began).toISOString())}, ${duration(ended - began)}`;
  if (run === null) return `${count(n)} attempts, ${outcome}: ${time}`;
  return `#${run.trial}${run.attempt > 1 ? `, attempt ${run.attempt}` : ""}${run.seat === null ? "" : `, seat ${run.seat}`} on ${run.place}${run.group === null ? "" : `, group ${shortGroup(run.group, sweep)}`}: ${outcome}, ${time}`;
}

/** The box at a time and lane, or nearly there. */
function boxAt(boxes: readonly Box[], time: number, lane: number, near: number): Box | null {
  return boxes.find((b) => { const within = lane - b.lane; return within >= b.part / b.parts && within < (b.part + 1) / b.parts && time >= b.began - near && time <= b.ended + near; }) ?? null;
}

const UNITS: [number, number[]][] = [[1, [1, 2, 5, 10, 20, 50, 100, 200, 500]], [1000, [1, 2, 5, 10, 15, 30]], [60_000, [1, 2, 5, 10, 15, 30]], [3_600_000, [1, 2, 3, 6, 12]], [86_400_000, [1, 2, 7, 14, 28, 91, 182, 365]]];

/** Round times, some six of them. */
function timesBetween(from: number, to: number): number[] {
  const strides = UNITS.flatMap(([unit, list]) => list.map((n) => n * unit));
  const stride = strides.find((s) => (to - from) / s <= 7) ?? strides.at(-1)!;
  const offset = new Date(from).getTimezoneOffset() * 60_000; // so that days begin at midnight here
  const times: number[] = [];
  for (let t = Math.ceil((from - offset) / stride) * stride + offset; t <= to && times.length < 40; t += stride) times.push(t);
  return times;
}

function timeText(ms: number, span: number): string {
  const text = clock(new Date(ms).toISOString());
  return span > 2 * 86_400_000 ? text.slice(5, 10) : span > 3 * 3_600_000 ? text.slice(5, 16) : span > 210_000 ? text.slice(11, 16) : `${text.slice(11)}${span < 10_000 ? `.${String(ms % 1000).padStart(3, "0")}` : ""}`;
}

function* drawTimeline(s: Surface, { places, boxes, lanes, marked }: Timeline, from: number, to: number, thick: number): Generator<void> {
  const [grid, text, faint] = [colour("--grid"), colour("--text-2"), colour("--point-faint")];
  const right = s.width - RIGHT;
  const px = (t: number) => LEFT + ((t - from) / Math.max(1, to - from)) * (right - LEFT);
  const bottom = TOP + lanes * thick;
  const times = timesBetween(from, to);
  const room = Math.max(1, Math.floor((right - LEFT) / 76));
  times.forEach((t, i) => {
    s.line([px(t), px(t)], [TOP, bottom], grid, 1, 1);
    if (i % Math.ceil(times.length / room) === 0) s.text(px(t), 12, timeText(t, to - from), text, px(t) > right - 40 ? "end" : "middle");
  });
  let free = -Infinity;
  for (const p of places) {
    const y = TOP + p.lane * thick;
    s.line([0, right], [y, y], grid, 1, 1);
    const middle = y + (p.lanes * thick) / 2;
    if (middle - free >= 12) {
      s.text(LEFT - 8, middle, cut(p.name, 16), text, "end");
      free = middle;
    }
  }
  const fills = new Map([...new Set(boxes.map((b) => b.outcome))].map((o) => [o, colour(colourOf(o))]));
  s.clip({ left: LEFT, top: TOP, right, bottom });
  for (let i = 0; i < boxes.length; i++) {
    const b = boxes[i]!;
    const high = (thick - 2) / b.parts;
    const dim = marked && !b.marked;
    s.box(px(b.began), TOP + b.lane * thick + 1 + b.part * high, Math.max(1, px(b.ended) - px(b.began) - 0.5), Math.max(1, high - (b.parts > 1 && high > 3 ? 0.5 : 0)), dim ? faint : fills.get(b.outcome)!, dim ? 0.35 : 0.85);
    if (i % BOXES_AT_ONCE === 0) yield;
  }
  s.clip(null);
}
