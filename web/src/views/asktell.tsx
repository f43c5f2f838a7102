/* For an ask and tell sweep, whose trials no runner takes: shell lines that ask for its trials. */
import type * as Api from "../api/types";
import { hasEnded } from "../live/sweep";
import { lazy } from "../parts/lazy";
import { judgedBy } from "../parts/objectives";
import { attempt, copy } from "../parts/small";

const ByHand = lazy(async () => (await import("./by_hand")).ByHand);

/** Three lines of shell: the server, an ask, a tell. `number` is the trial that the ask would
 * get. */
export function exampleOf(sweep: Api.Sweep, origin: string, number: number): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const json = (value: unknown) => quoted(JSON.stringify(value));
  const metrics = Object.fromEntries(judgedBy(sweep).map((name) => [name, 0.5]));
  return [
    `A="Authorization: Bearer $ASSAY_TOKEN"; J="Content-Type: application/json"; U=${quoted(`${origin}/v1/sweeps/${encodeURIComponent(sweep.id)}/suggestions`)}`,
    `curl -H "$A" -H "$J" "$U" -d ${json({ client: "me" })}`,
    `curl -H "$A" -H "$J" "$U/${number}/complete" -d ${json({ client: "me", metrics })}`,
  ].join("\n");
}

export function AskPanel({ sweep }: { sweep: Api.Sweep }) {
  if (sweep.for_runners || hasEnded(sweep.state)) return null;
  const text = exampleOf(sweep, location.origin, sweep.counts.total);
  return (
    <section class="panel copies" aria-label="Ask and tell">
      <div class="bar"><h2>Ask and tell</h2></div>
      <p>Runners leave this sweep alone: its document has no <code>trial</code>. Whoever asks is told what to try, tries it, and tells what came of it.</p>
      <ByHand sweep={sweep} />
      <button type="button" class="quiet" onClick={() => attempt(() => copy(text))}>Copy</button>
      <pre class="snippet" tabIndex={0} aria-label="Example in shell">{text}</pre>
      <p class="note">The question answers the trial's number and parameters; the number goes into the last line. <code>ASSAY_TOKEN</code> is your token, <code>me</code> any name for whoever asks. In a terminal: <code>assay ask {sweep.id}</code>, <code>assay tell {sweep.id} NUMBER {judgedBy(sweep).map((n) => `${n}=VALUE`).join(" ")}</code>.</p>
    </section>
  );
}
