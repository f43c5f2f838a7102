/* The importance of each parameter: Sobol indices of the server's model, with their intervals. */
import { useRef } from "preact/hooks";
import type * as Api from "../api/types";
import { sig, some } from "../format";
import { useSight } from "../live/lazy_resource";
import { hasEnded, type SweepModel } from "../live/sweep";
import { csvOf } from "../parts/csv";
import { Downloads, type Picture } from "../parts/downloads";
import { barsOf } from "../parts/plot_picture";
import { Chips } from "../parts/small";
import { choose, route } from "../route";
import { colour } from "../theme";

const [HEAD_PX, ROW_PX, MOST_PX, DOWNLOADS_PX] = [24, 26, 420, 18]; // of the table of shares, as style.css has it

type Share = Api.Importance["parameters"][number];

const two = (v: number | null) => (v === null ? "" : v.toFixed(2));
const percent = (v: number) => `${(100 * Math.min(1, Math.max(0, v))).toFixed(1)}%`;

/** The objective whose importance is shown: that in the address, else the first. */
function chosenOf(sweep: Api.Sweep): string {
  const named = route.value.query.get("importance");
  return sweep.metrics.find((m) => m.name === named)?.name ?? sweep.metric.name;
}

export function ImportancePanel({ sweep, model }: { sweep: Api.Sweep; model: SweepModel }) {
  const metric = chosenOf(sweep);
  const importance = model.importanceOf(metric);
  const element = useSight<HTMLElement>(importance);
  const now = importance.value.value;
  const isHeld = useRef(!hasEnded(sweep.state)); // who saw it run sees it keep its place
  const tall = `${Math.min(MOST_PX, HEAD_PX + ROW_PX * Object.keys(sweep.document.parameters).length) + DOWNLOADS_PX}px`; // as the shares: nothing below moves
  const failed = importance.refresher.error.value;
  const hasConditions = Object.values(sweep.document.parameters as Record<string, Api.Parameter>).some((p) => p.when !== undefined);
  return (
    <section class="panel importance" aria-label="Importance" ref={element}>
      <div class="bar">
        <h2>Importance <small>of the parameters for <bdi data-testid="importance-of">{metric}</bdi></small></h2>
        {sweep.metrics.length > 1 && <Chips label="Objective" chosen={metric} options={sweep.metrics.map((m) => ({ id: m.name, label: m.name }))} choose={(name) => choose({ importance: name === sweep.metric.name ? null : name })} />}
        {now && <span class="faint">{now.r2 !== null && <span title="How well the model foretells trials that it did not see: 1 is without error, 0 no better than their mean">R² <b data-testid="r2">{now.r2.toFixed(2)}</b>, </span>}{some(now.trials, "trial")}</span>}
        {now && now.parameters.length > 0 && <><span class="grow" /><ul class="legend"><li class="l-alone">alone</li><li class="l-total">with others</li><li class="l-range">90 %</li></ul></>}
      </div>
      {failed !== null && <p class="stale" role="status">{now ? "Not up to date" : "Not known"}: {failed}</p>}
      {now === null ? failed === null && <p class="hint" style={{ minHeight: tall }}>Loading…</p>
        : now.parameters.length === 0 ? <p class="hint" style={isHeld.current ? { minHeight: tall } : undefined}>Not known{now.reason ? `: ${now.reason}.` : "."}</p> : <Shares shares={now.parameters} file={`${sweep.id}-importance-${metric}`} />}
      {hasConditions && (now === null || now.parameters.length > 0 || isHeld.current) && <p class="note">* Within the part of the space where the parameter is active; such shares do not add up with the others.</p>}
    </section>
  );
}

function pictureOfShares(shares: readonly Share[]): Picture {
  const rows = shares.map((s) => ({
    name: s.name, text: `${two(s.total)} (${two(s.total_low)}–${two(s.total_high)}), alone ${two(s.first)}`,
    parts: [
      { from: 0, to: s.total ?? 0, fill: colour("--share") }, { from: 0, to: Math.min(s.first ?? 0, s.total ?? 0), fill: colour("--accent") },
      ...(s.total_low !== null && s.total_high !== null ? [{ from: s.total_low, to: s.total_high, fill: colour("--text"), thin: true }] : []),
    ],
  }));
  return barsOf(rows, [["alone", colour("--accent")], ["with others", colour("--share")], ["90 %", colour("--text")]]);
}

function Shares({ shares, file }: { shares: readonly Share[]; file: string }) {
  const csv = () => csvOf(["parameter", "total", "total_low", "total_high", "alone", "alone_low", "alone_high"], shares.map((s) => [s.name, s.total, s.total_low, s.total_high, s.first, s.first_low, s.first_high]));
  return (
    <>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Shares of the parameters">
        <table class="shares">
          <thead>
            <tr>
              <th scope="col">Parameter</th><th scope="col" class="wide"><span class="off">Share of the variance</span></th>
              <th scope="col" class="num" title="Its share with all that it does together with others">Total</th>
              <th scope="col" class="num" title="Nine in ten of the possible values of the total lie between">90 %</th>
              <th scope="col" class="num" title="What it explains by itself">Alone</th>
            </tr>
          </thead>
          <tbody>
            {shares.map((s) => (
              <tr key={s.name}>
                <th scope="row" title={s.conditional ? "Where it is active" : undefined}>{s.name}{s.conditional && <span class="faint"> *</span>}</th>
                <td class="wide"><Bar share={s} /></td>
                <td class="num"><b>{two(s.total)}</b></td>
                <td class="num">{s.total_low !== null && s.total_high !== null ? `${two(s.total_low)}–${two(s.total_high)}` : ""}</td>
                <td class="num" title={s.first_low !== null && s.first_high !== null ? `${sig(s.first_low, 3)} to ${sig(s.first_high, 3)}` : undefined}>{two(s.first)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Downloads label="Importance of the parameters" file={file} picture={() => pictureOfShares(shares)} csv={csv} />
    </>
  );
}

/** The total as a bar, with the share of the parameter alone marked in it, and the interval of the
 * total as a whisker. */
function Bar({ share: s }: { share: Share }) {
  if (s.total === null) return null;
  return (
    <div class="share" aria-hidden="true">
      <i class="total" style={{ width: percent(s.total) }} />
      {s.first !== null && <i class="alone" style={{ width: percent(Math.min(s.first, s.total)) }} />}
      {s.total_low !== null && s.total_high !== null && <i class="range" style={{ left: percent(s.total_low), width: percent(s.total_high - s.total_low) }} />}
    </div>
  );
}
