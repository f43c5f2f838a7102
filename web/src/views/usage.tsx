/* What an attempt used of its machine over time: processor, memory, GPUs. A line for the attempt, or one
 * for each rank of its gang. */
import { useMemo } from "preact/hooks";
import type * as Api from "../api/types";
import { bytes, count, sig } from "../format";
import { csvOf } from "../parts/csv";
import { Figure } from "../parts/figure";
import { drawFrame, frameOf } from "../parts/frame";
import { axisBetween, placeOf } from "../parts/scale_of";
import type { Surface } from "../parts/surface";
import { colour } from "../theme";

const HEIGHT = 150;
const LINES_MAX = 64; // ranks that are drawn

type Kind = "cpu" | "memory_bytes" | "gpu" | "gpu_memory_bytes";

const KINDS: { id: Kind; name: string; unit: string; by: number; show: (v: number) => string }[] = [
  { id: "cpu", name: "Processor", unit: "cores", by: 1, show: (v) => `${sig(v, 3)} cores` },
  { id: "memory_bytes", name: "Memory", unit: "GB", by: 1e9, show: bytes },
  { id: "gpu", name: "GPU", unit: "busy GPUs", by: 1, show: (v) => `${sig(v, 3)} busy` },
  { id: "gpu_memory_bytes", name: "GPU memory", unit: "GB", by: 1e9, show: bytes },
];

const known = (list: readonly (number | null)[] | undefined): number[] => (list ?? []).filter((v): v is number => v !== null);

export function UsagePanel({ usage, file }: { usage: readonly Api.AttemptUsage[]; file: string }) {
  const kinds = KINDS.filter((k) => usage.some((u) => known(u[k.id]).length > 0));
  if (kinds.length === 0) return null;
  return (
    <section class="panel" aria-label="Use of the machine" data-lines={usage.length}>
      <div class="bar"><h2>Use of the machine <small>{usage[0]!.seat === null ? `attempt ${usage[0]!.attempt}` : `${count(usage.length)} ranks of attempt ${usage[0]!.attempt}`}</small></h2></div>
      <div class="curves">{kinds.map((k) => <One key={k.id} kind={k} usage={usage} file={`${file}-${k.id}`} />)}</div>
      {usage.length > LINES_MAX && <p class="note">The first {LINES_MAX} ranks are drawn; CSV has all.</p>}
    </section>
  );
}

function One({ kind, usage, file }: { kind: (typeof KINDS)[number]; usage: readonly Api.AttemptUsage[]; file: string }) {
  const draw = useMemo(() => (s: Surface) => drawUse(s, kind, usage), [kind, usage]);
  const all = usage.flatMap((u) => known(u[kind.id]));
  const mean = all.reduce((sum, v) => sum + v, 0) / all.length;
  const text = `${kind.show(mean)} on average, at most ${kind.show(all.reduce((most, v) => Math.max(most, v), 0))}`;
  const csv = () => csvOf(["attempt", "seat", "seconds", kind.id], usage.flatMap((u) => (u[kind.id] ?? []).map((v, i): (string | number | null)[] => [u.attempt, u.seat, (i * u.every_ms) / 1000, v])));
  return (
    <figure>
      <figcaption><span>{kind.name} <b>{text}</b></span></figcaption>
      <Figure label={`${kind.name} over time, in ${kind.unit}: ${text}`} height={HEIGHT} draw={draw} file={file} csv={csv} />
    </figure>
  );
}

/** The unit of the time axis that suits a duration. */
const unitOf = (ms: number): [string, number] => (ms > 3 * 86_400_000 ? ["days", 86_400_000] : ms > 3 * 3_600_000 ? ["hours", 3_600_000] : ms > 180_000 ? ["minutes", 60_000] : ["seconds", 1000]);

function drawUse(s: Surface, kind: (typeof KINDS)[number], usage: readonly Api.AttemptUsage[]): void {
  const last = Math.max(...usage.map((u) => u.every_ms * (u[kind.id]?.length ?? 0)));
  const [unit, ms] = unitOf(last);
  const most = usage.reduce((m, u) => known(u[kind.id]).reduce((a, v) => Math.max(a, v), m), 0);
  const x = axisBetween(unit, 0, last / ms, false);
  const y = axisBetween(kind.unit, 0, (most / kind.by) * 1.05 || 1, false);
  const f = frameOf(s.width, s.height);
  drawFrame(s, f, x, y);
  const stroke = colour("--accent");
  for (const u of usage.slice(0, LINES_MAX)) {
    const values = u[kind.id] ?? [];
    const xs = values.map((_, i) => f.px(placeOf(x, ((i + 0.5) * u.every_ms) / ms)));
    const ys = values.map((v) => (v === null ? NaN : f.py(placeOf(y, v / kind.by))));
    if (usage.length === 1) s.area(...filled(xs, ys, f.bottom), stroke, 0.12);
    s.line(xs, ys, stroke, 1.5, usage.length > 8 ? 0.5 : 0.9);
    if (values.length === 1) s.dot(xs[0]!, ys[0]!, 3, stroke, 1);
  }
}

/** What lies below a line, where it is known. */
function filled(xs: number[], ys: number[], bottom: number): [number[], number[], number[]] {
  const at = xs.map((_, i) => i).filter((i) => !Number.isNaN(ys[i]!));
  return [at.map((i) => xs[i]!), at.map(() => bottom), at.map((i) => ys[i]!)];
}
