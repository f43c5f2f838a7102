/* What the search has learned of the parameters, and the condition that would declare it. */
import type * as Api from "../api/types";
import { count, param } from "../format";
import { attempt, copy } from "../parts/small";
import { flow } from "../parts/yaml";

export function LearnedPanel({ learned }: { learned: readonly Api.LearnedParameter[] }) {
  return (
    <section class="panel" aria-label="What was learned">
      <div class="bar"><h2>What was learned <small>of parameters that declare no condition</small></h2></div>
      <ul class="words" data-testid="learned">
        {learned.map((l) => <li key={l.parameter}><b><bdi>{l.parameter}</bdi></b> has no effect where {l.no_effect.map(placeOf).join(", nor where ")}.{l.when && <When when={flow(l.when)} />}</li>)}
      </ul>
    </section>
  );
}

const placeOf = (e: Api.LearnedParameter["no_effect"][number]) =>
  `${Object.entries(e.where).map(([choice, value]) => `${choice} is ${param(value)}`).join(" and ")} (${count(e.trials)} trials)`;

function When({ when }: { when: string }) {
  return <> To declare it: <code>when: {when}</code> <button type="button" class="quiet" onClick={() => attempt(() => copy(`when: ${when}`))}>Copy</button></>;
}
