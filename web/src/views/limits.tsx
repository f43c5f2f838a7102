/* The limits of a sweep, in a dialog that is open while it exists. They can be changed while it runs and after it has ended: an
 * ended sweep then runs on if they leave it work. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, messageOf } from "../api/http";
import type * as Api from "../api/types";

type Limits = NonNullable<Api.SweepPatch["limits"]>;
type Name = keyof Limits;

const ROWS: { name: Name; label: string; empty: string }[] = [
  { name: "max_trials", label: "Trials", empty: "" },
  { name: "max_concurrent_trials", label: "At the same time", empty: "no limit" },
  { name: "max_failed_trials", label: "Failed trials", empty: "no limit" },
  { name: "max_restarts", label: "Restarts of a trial", empty: "default" },
  { name: "trial_timeout", label: "Time of a trial", empty: "no limit" },
  { name: "wall_time", label: "Time of the sweep", empty: "no limit" },
  { name: "stop_when", label: "Ends when so little is left to gain", empty: "never" },
  { name: "grace", label: "Grace after SIGTERM", empty: "default" },
];

/** What was entered, as the API takes it: empty removes the limit, digits are a number, and the
 * server reads the rest ("6h") or says what is wrong with it. */
function entered(text: string): number | string | null {
  const trimmed = text.trim();
  return trimmed === "" ? null : /^\d+$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/** "0.01" in units of the metric, "1%" as a share of what trials differ; the rest of the limit stays. */
function stopWhen(text: string, before: Api.StopWhen | null | undefined): Api.StopWhen | string | null {
  const found = /^([\d.eE+-]+)(%?)$/.exec(text.trim());
  const number = Number(found?.[1]);
  if (!found || Number.isNaN(number)) return entered(text) as string | null;
  const min = before?.min_trials === undefined ? {} : { min_trials: before.min_trials };
  return found[2] ? { relative: number / 100, ...min } : { regret: number, ...min };
}

function shown(sweep: Api.Sweep, name: Name): string {
  const limits = sweep.document.limits;
  if (name !== "stop_when") return String(limits?.[name] ?? "");
  const { regret, relative } = limits?.stop_when ?? {};
  return relative !== undefined ? `${Number((100 * relative).toPrecision(12))}%` : String(regret ?? "");
}

export function LimitsDialog(props: { sweep: Api.Sweep; take: (sweep: Api.Sweep) => void; close: () => void }) {
  const { sweep, take, close } = props; // close(): it is closed, and is to be removed
  const dialog = useRef<HTMLDialogElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const [notes, setNotes] = useState<string[]>([]);
  useLayoutEffect(() => dialog.current?.showModal(), []);

  const submit = async (event: Event) => {
    event.preventDefault();
    const data = new FormData(form.current as HTMLFormElement);
    const changed = ROWS.filter((r) => String(data.get(r.name) ?? "").trim() !== shown(sweep, r.name));
    if (changed.length === 0) return dialog.current?.close();
    setBusy(true);
    try {
      // The server checks what was typed: names the field, what was found, what was expected.
      const limits = Object.fromEntries(changed.map((r) => [r.name, r.name === "stop_when" ? stopWhen(String(data.get(r.name)), sweep.document.limits?.stop_when) : entered(String(data.get(r.name)))])) as Limits;
      const now = await call("PATCH /v1/sweeps/{sweep}", { path: { sweep: sweep.id }, body: { limits } });
      take(now);
      setRefusal(null);
      setNotes(now.notes ?? []);
      if ((now.notes ?? []).length === 0) dialog.current?.close();
    } catch (error) {
      setRefusal(messageOf(error));
    }
    setBusy(false);
  };

  return (
    <dialog ref={dialog} class="limits" onClose={close} aria-labelledby="limits-title">
      <h2 id="limits-title">Limits of <bdi>{sweep.id}</bdi></h2>
      <form ref={form} onSubmit={submit}>
        <dl>
          {ROWS.map((r) => (
            <div key={r.name}>
              <dt><label for={`limit-${r.name}`}>{r.label}</label></dt>
              <dd><input id={`limit-${r.name}`} name={r.name} type="text" inputMode={r.name.includes("time") || r.name === "grace" || r.name === "stop_when" ? "text" : "numeric"} autocomplete="off" defaultValue={shown(sweep, r.name)} placeholder={r.empty} required={r.name === "max_trials"} /></dd>
            </div>
          ))}
        </dl>
        <p class="hint">Times such as 90s, 30m, 6h; a number counts seconds. What is left to gain in units of the metric (0.01), or as a share of what trials differ (1%). What is left empty is no limit, or the default.</p>
        {refusal !== null && <p class="bad" role="alert">{refusal}</p>}
        {notes.map((note) => <p key={note} role="status">{note}</p>)}
        <div class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>{notes.length > 0 ? "Close" : "Keep them"}</button>
          <button type="submit" class="primary" disabled={busy}>Change limits</button>
        </div>
      </form>
    </dialog>
  );
}
