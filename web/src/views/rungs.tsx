/* Early stopping: the rungs of a sweep with what became of the trials that reached them, and the
 * decisions about one trial with their reasons. */
import type * as Api from "../api/types";
import { count, sig, toNumber } from "../format";
import { csvOf } from "../parts/csv";
import { Downloads, type Picture } from "../parts/downloads";
import { barsOf } from "../parts/plot_picture";
import { colour } from "../theme";

type Rung = Api.StoppingReport["rungs"][number];

const percent = (part: number, whole: number) => `${(100 * part) / Math.max(1, whole)}%`;
const times = (n: number, one: string, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

/** The method with its range of steps, as the document says it. */
function ruleOf(rule: Api.EarlyStopping | undefined): string {
  if (rule === undefined) return "";
  const [from, to] = [rule.min_steps, rule.max_steps];
  const steps = to === undefined ? "" : `, steps ${from === undefined || from === "auto" ? "" : `${from} `}to ${to}`;
  return `${rule.method}${steps}${rule.eta === undefined ? "" : `, eta ${rule.eta}`}`;
}

export function RungsPanel({ sweep }: { sweep: Api.Sweep }) {
  const report = sweep.early_stopping;
  if (report === null || report === undefined) return null;
  const { rungs, steps_spent: spent, steps_saved: saved, warning } = report;
  const reached = rungs.filter((r) => r.reached > 0);
  const most = Math.max(1, ...rungs.map((r) => r.reached));
  return (
    <section class="panel" aria-label="Early stopping" data-rungs={rungs.length}>
      <div class="bar">
        <h2>Early stopping <small>{ruleOf(sweep.document.early_stopping)}</small></h2>
        <ul class="legend"><li class="l-went">went on</li><li class="l-waits">waits</li><li class="l-stopped">stopped</li></ul>
        <span class="grow" />
        <span class="faint" title="The steps of all trials, and those that the stopped ones would have had besides"><b data-testid="steps-spent">{count(spent)}</b> steps spent, <b data-testid="steps-saved">{count(saved)}</b> saved{spent + saved > 0 && ` (${Math.round((100 * saved) / (spent + saved))} %)`}</span>
      </div>
      {warning && <p class="reason bad" role="status">{warning}</p>}
      {rungs.length === 0 ? <p class="hint">The first rung is chosen when enough trials have ended.</p> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Rungs">
          <table class="shares rungs">
            <thead>
              <tr>
                <th scope="col" class="num">Step</th><th scope="col" class="wide"><span class="off">Share of the trials</span></th>
                <th scope="col" class="num" title="Trials with a result at this rung">Reached</th>
                <th scope="col" class="num" title="Trials that were pruned here, at once or after they had waited">Stopped</th>
                <th scope="col" class="num" title="Trials that wait here for a promotion">Wait</th>
                <th scope="col" class="num roomy" title="Decisions to stop or to pause after which the attempt ended as it was told">Obeyed</th>
                <th scope="col" class="num" title="Decisions after which the attempt ended in another way, had to be killed, or was lost">Did not</th>
              </tr>
            </thead>
            <tbody>{rungs.map((r) => <Row key={r.step} rung={r} most={most} />)}</tbody>
          </table>
        </div>
      )}
      {rungs.length > 0 && <Downloads label="Rungs of early stopping" file={`${sweep.id}-rungs`} picture={() => pictureOfRungs(rungs, most)} csv={() => csvOf(["step", "reached", "stopped", "wait", "obeyed", "disobeyed"], rungs.map((r) => [r.step, r.reached, r.stopped, r.paused, r.obeyed, r.disobeyed]))} />}
      {rungs.length > 0 && reached.length === 0 && warning === null && <p class="note">No trial has reached a rung yet.</p>}
    </section>
  );
}

/** How many of the trials at a rung went on. */
const wentOn = (r: Rung) => Math.max(0, r.reached - r.stopped - r.paused);

function pictureOfRungs(rungs: readonly Rung[], most: number): Picture {
  const fills = [colour("--accent"), colour("--paused"), colour("--pruned")] as const;
  const rows = rungs.map((r) => {
    const ends = [wentOn(r), wentOn(r) + r.paused, wentOn(r) + r.paused + r.stopped].map((n) => n / most);
    return { name: `step ${count(r.step)}`, text: `${count(r.reached)} reached, ${count(r.stopped)} stopped, ${count(r.paused)} wait`, parts: ends.map((to, i) => ({ from: ends[i - 1] ?? 0, to, fill: fills[i]! })) };
  });
  return barsOf(rows, [["went on", fills[0]], ["waits", fills[1]], ["stopped", fills[2]]]);
}

function Row({ rung: r, most }: { rung: Rung; most: number }) {
  const on = wentOn(r);
  const text = `${times(r.reached, "trial")} reached step ${r.step}: ${count(on)} went on, ${times(r.paused, "waits", "wait")}, ${times(r.stopped, "was stopped", "were stopped")}`;
  return (
    <tr>
      <th scope="row" class="num">{count(r.step)}</th>
      <td class="wide" title={text}>
        <div class="rung" aria-hidden="true">
          <i class="went" style={{ width: percent(on, most) }} /><i class="waits" style={{ width: percent(r.paused, most) }} /><i class="stopped" style={{ width: percent(r.stopped, most) }} />
        </div>
      </td>
      <td class="num"><b>{count(r.reached)}</b></td>
      <td class="num">{count(r.stopped)}</td>
      <td class="num">{count(r.paused)}</td>
      <td class="num roomy">{count(r.obeyed)}</td>
      <td class={`num ${r.disobeyed > 0 ? "bad" : ""}`}>{count(r.disobeyed)}</td>
    </tr>
  );
}

/* In the words of `assay trial` (cli/view/rung_view.c). */
const DECISIONS: Record<Api.RungResult["decision"], string> = { go_on: "goes on", prune: "pruned", pause: "paused" };

/** The decisions about one trial. */
export function TrialRungsPanel({ trial }: { trial: Api.Trial }) {
  const rungs = trial.rungs ?? [];
  if (rungs.length === 0) return null;
  return (
    <section class="panel" aria-label="Rungs">
      <div class="bar"><h2>Rungs <small>of early stopping</small></h2></div>
      <ol class="decisions">
        {rungs.map((r) => (
          <li key={r.seq} class={`decision-${r.decision}`}>
            <p><b>Step {count(r.step)}</b><span title={String(r.value ?? "")}>{r.value === null ? "no number" : sig(toNumber(r.value))}</span>{r.rank !== null && r.of !== null && <span>rank {count(r.rank)} of {count(r.of)}</span>}<span class="told">{DECISIONS[r.decision]}{typeof r.promoted_seq === "number" ? ", promoted" : ""}</span></p>
            <p class="faint">{r.reason}</p>
          </li>
        ))}
      </ol>
    </section>
  );
}
