/* The ensemble of a sweep: its members, their weights, and its gain over the best single trial. */
import type * as Api from "../api/types";
import { count, own, param, sig, toNumber } from "../format";
import { hasEnded } from "../live/sweep";
import { href } from "../route";

export function EnsemblePanel({ sweep, ensemble }: { sweep: Api.Sweep; ensemble: Api.Ensemble }) {
  if (ensemble.state !== "ready" && !hasEnded(sweep.state)) return null;
  // Without an ensemble, show the reason only if the sweep asks for one, and its trials can leave what one is made of:
  // those of the built-in trainer do, and programs where one has.
  const expected = sweep.document.ensemble && ("train" in (sweep.document.trial ?? {}) || (ensemble.candidates ?? 0) > 0);
  if (ensemble.state === "none" && !expected) return null;
  return (
    <section class="panel ensemble" aria-label="Ensemble">
      <div class="bar">
        <h2>Ensemble {ensemble.method && <small>{ensemble.method}, </small>}{ensemble.metric && <small>{ensemble.metric}, {ensemble.goal}</small>}</h2>
        {ensemble.state === "ready" && <span class="faint">{count(ensemble.members?.length ?? 0)} {ensemble.members?.length === 1 ? "member" : "members"} from {count(ensemble.candidates ?? 0)} candidates</span>}
      </div>
      {ensemble.state === "ready" ? <Ready sweep={sweep} ensemble={ensemble} />
        : <p class="hint">{ensemble.state === "pending" ? "It is being made." : `There is none: ${ensemble.reason ?? "the sweep asked for none, or too few trials left predictions"}.`}</p>}
    </section>
  );
}

function Ready({ sweep, ensemble }: { sweep: Api.Sweep; ensemble: Api.Ensemble }) {
  const members = [...(ensemble.members ?? [])].sort((a, b) => b.weight - a.weight);
  const heaviest = Math.max(...members.map((m) => Math.abs(m.weight)), 1e-9);
  const names = Object.entries(sweep.document.parameters).map(([name, space]) => ({ name, cls: space.type === "categorical" ? "" : "num" }));
  return (
    <div class="split">
      <div>
        <Comparison ensemble={ensemble} sweep={sweep} />
        <TestRows ensemble={ensemble} />
        <p class="note">
          {ensemble.rows !== undefined
            ? <>Both are measured on all {count(ensemble.rows)} held-out rows, {ensemble.folds !== undefined ? `cut into ${count(ensemble.folds)} folds: what was chosen without a fold predicts it` : "of which what was chosen on one half predicts the other half"}. Members are shown with the values that chose them, which are too good.</>
            : <>The members were chosen on {count(ensemble.rows_select ?? 0)} held-out rows, and every figure here is measured on the other {count(ensemble.rows_report ?? 0)}.</>}
          {ensemble.metric_reason && <> The metric: {ensemble.metric_reason}.</>}
        </p>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Members of the ensemble">
        <table class="members">
          <thead><tr><th scope="col" class="num">Trial</th><th scope="col">Weight</th><th scope="col" class="num">{ensemble.metric}</th>{names.map((n) => <th key={n.name} scope="col" class={n.cls}>{n.name}</th>)}</tr></thead>
          <tbody>
            {members.map((m) => (
              <tr key={m.number}>
                <td class="num"><a href={href(["sweeps", sweep.id, "trials", m.number])}>#{m.number}</a></td>
                <td class="weight" title={`chosen ${m.count} times`}><i aria-hidden="true" style={{ width: `${(72 * Math.max(0, m.weight)) / heaviest}px` }} />{sig(m.weight, 3)}</td>
                <td class="num">{sig(toNumber(m.value))}</td>
                {names.map((n) => <td key={n.name} class={n.cls}>{param(own(m.params, n.name))}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

/** Both on the test rows, which chose nothing. */
function TestRows({ ensemble }: { ensemble: Api.Ensemble }) {
  const test = ensemble.test;
  if (test === undefined) return null;
  if (test.reason !== undefined) return <p class="note">No figure of the test rows: {test.reason}.</p>;
  const figures: [string, Api.TestFigure | undefined][] = [["Ensemble", test.ensemble], ["Best single", test.best_single], ["Gain", test.gain]];
  return (
    <>
      <h3>On {count(test.rows ?? 0)} test rows</h3>
      <dl class="versus">
        {figures.map(([name, f]) => f && (
          <div key={name}>
            <dt>{name}{f.probability !== undefined && <> <small>{`${Math.round(100 * f.probability)} %: ${sig(toNumber(f.low), 3)} to ${sig(toNumber(f.high), 3)}`}</small></>}</dt>
            <dd>{sig(toNumber(f.value), 3)}{f.within_noise && <small> within the noise</small>}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function Comparison({ sweep, ensemble }: { sweep: Api.Sweep; ensemble: Api.Ensemble }) {
  const [own, single] = [toNumber(ensemble.value), toNumber(ensemble.best_single?.value)];
  const gain = ensemble.gain;
  const better = gain ? ensemble.recommended === "ensemble" && !gain.within_noise
    : own !== null && single !== null && (ensemble.goal === "maximize" ? own > single : own < single);
  return (
    <dl class="versus">
      <div><dt>Ensemble</dt><dd class={better ? "good" : ""}>{sig(own)}</dd></div>
      <div><dt>Best single {ensemble.best_single && <a href={href(["sweeps", sweep.id, "trials", ensemble.best_single.number])}>#{ensemble.best_single.number}</a>}</dt><dd>{sig(single)}</dd></div>
      {gain && <div><dt>Gain{gain.probability !== undefined && <> <small>{`${Math.round(100 * gain.probability)} %: ${sig(toNumber(gain.low), 3)} to ${sig(toNumber(gain.high), 3)}`}</small></>}</dt><dd>{sig(toNumber(gain.value), 3)}{gain.within_noise && <small> within the noise</small>}</dd></div>}
      {ensemble.recommended && <div><dt>Recommended</dt><dd>{ensemble.recommended === "ensemble" ? "ensemble" : `#${ensemble.best_single?.number ?? ""} alone`}</dd></div>}
    </dl>
  );
}
