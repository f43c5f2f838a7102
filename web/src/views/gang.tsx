/* The ranks of a large trial: who trains in which epoch, who was lost and why, bytes sent. */
import { bytes, clock, count, NONE } from "../format";
import type * as Api from "../api/types";
import { Since, State } from "../parts/small";

/* A gang of a day may have lost thousands of ranks; the page shows the latest. */
const GONE_SHOWN = 50;

const isHere = (s: Api.GangSeat) => s.rank !== null || s.state === "seated" || s.state === "listening";

export function GangPanel({ gang }: { gang: Api.Gang | null }) {
  if (gang === null) return null;
  const here = gang.seats.filter(isHere);
  const gone = gang.seats.filter((s) => !isHere(s)).reverse();
  const members = gang.seats.filter((s) => s.rank !== null).length;
  return (
    <section class="panel flush" aria-label="Ranks">
      <div class="bar">
        <h2>Ranks</h2>
        <State state={gang.state} />
        <span class="faint">{members} of {gang.ranks}{gang.min_ranks < gang.ranks && `, at least ${gang.min_ranks}`}</span>
      </div>
      <p class="hint">Epoch {count(gang.epoch)}, {gang.step === null ? gang.state === "over" ? "no step" : "no step yet" : `step ${count(gang.step)}`}, {count(gang.deaths)} lost, {bytes(gang.sent_bytes)} sent between the ranks.</p>
      <div class="scroll">
        <table>
          <thead><tr><th scope="col" class="num">Rank</th><th scope="col">State</th><th scope="col">Runner</th><th scope="col">Host</th><th scope="col" class="num" title="The epoch in which it joined">Epoch</th><th scope="col" class="num">Step</th><th scope="col" class="num">Sent</th><th scope="col">Why it ended</th></tr></thead>
          <tbody>
            {here.map((s) => <Row key={s.seat} seat={s} />)}
            {gone.slice(0, GONE_SHOWN).map((s) => <Row key={s.seat} seat={s} />)}
          </tbody>
        </table>
      </div>
      {gone.length > GONE_SHOWN && <p class="hint">{count(gone.length - GONE_SHOWN)} more that are no members any more.</p>}
    </section>
  );
}

function Row({ seat }: { seat: Api.GangSeat }) {
  return (
    <tr class={isHere(seat) ? "" : "faint"} title={seat.reason ?? `seat ${seat.seat}, since ${clock(seat.since)}`}>
      <td class="num">{seat.rank ?? NONE}</td>
      <td><State state={seat.state} />{seat.ended_at && <span class="faint"> <Since time={seat.ended_at} /></span>}</td>
      <td>{seat.runner}</td>
      <td>{seat.host ?? NONE}</td>
      <td class="num">{seat.joined_epoch ?? NONE}</td>
      <td class="num">{seat.step === null ? NONE : count(seat.step)}</td>
      <td class="num">{bytes(seat.sent_bytes)}</td>
      <td>{seat.reason}</td>
    </tr>
  );
}
