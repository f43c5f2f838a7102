/* Small pieces that every view uses. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { messageOf } from "../api/http";
import type * as Api from "../api/types";
import { ago, clock, count, elapsed } from "../format";
import { now } from "../live/page_clock";
import type { Refresher } from "../live/refresher";
import { href } from "../route";

/** A duration, final or so far; only a running one follows the clock. */
export const took = (start: string | null | undefined, end: string | null | undefined) => elapsed(start, end, () => now.value);

/** For so long a trial has run, without the time in which it waited between its attempts; null: it has not started. */
export function ranFor(trial: Api.Trial): number | null {
  const since = took(trial.running_since, null);
  return typeof trial.ran_ms === "number" ? trial.ran_ms + (since ?? 0) : null;
}

export function State({ state }: { state: string }) {
  return <span class={`state state-${state}`}><i aria-hidden="true" />{state}</span>;
}

/** The id of a group without the id of its sweep, which is shown nearby. */
export const shortGroup = (group: string, sweep: string) => (group.startsWith(`${sweep}.`) ? group.slice(sweep.length + 1) : group);

export function Since({ time }: { time: string | null | undefined }) {
  return <time dateTime={time ?? ""} title={clock(time)}>{ago(time, now.value)}</time>;
}

/** A message about the last action of the user. */
export const notice = signal<string | null>(null);

export async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    notice.value = null;
    await work();
  } catch (error) {
    notice.value = messageOf(error);
  }
}

export function copy(text: string): Promise<void> {
  // Browsers give no clipboard to pages that another machine served over plain HTTP.
  if (!("clipboard" in navigator)) throw new Error("The browser lets only pages from https or this machine copy; select the text instead");
  return navigator.clipboard.writeText(text);
}

export function Notice() {
  if (notice.value === null) return null;
  return (
    <div class="notice" role="alert">
      <span>{notice.value}</span>
      <button type="button" class="quiet" onClick={() => { notice.value = null; }}>Dismiss</button>
    </div>
  );
}

/** Shown instead of a view while it has no data, and above it when a reload failed (of `also`, too). `missing`: what
 * is shown if the server has no such object. */
export function Loading({ of, also, ready, missing, children }: { of: Refresher; also?: Refresher; ready: boolean; missing?: ComponentChildren; children: ComponentChildren }) {
  const error = of.error.value ?? (ready ? also?.error.value : null) ?? null;
  if (!ready && error === null) return <p class="hint" role="status">Loading…</p>;
  if (!ready && of.missing.value && missing) return <div class="empty" role="alert">{missing}</div>;
  if (!ready) return <div class="empty" role="alert"><h1>This could not be loaded</h1><p>{error}</p></div>;
  return <>{error !== null && <p class="stale" role="status">Not up to date: {error}.{of.missing.value ? " It may have been deleted." : " Trying again."}</p>}{children}</>;
}

/** There is no sweep of this name. */
export function NoSweep({ id }: { id: string }) {
  return (
    <>
      <h1>There is no sweep <bdi>{id}</bdi></h1>
      <p>It may have been deleted, or its name is another.</p>
      <p><a href={href(["sweeps"])}>All sweeps</a></p>
    </>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><h2>{title}</h2>{children}</div>;
}

export const TRIAL_STATES: Api.TrialState[] = ["completed", "pruned", "failed", "cancelled", "running", "paused", "queued"];

/** A bar of all planned trials by state; the empty rest are trials that do not exist yet. */
export function Progress({ counts, planned }: { counts: Api.Counts; planned: number }) {
  const ended = counts.completed + counts.pruned + counts.failed + counts.cancelled;
  const all = Math.max(planned, counts.total, 1);
  const parts = TRIAL_STATES.filter((s) => counts[s] > 0);
  const text = `${ended} of ${planned} trials ended: ${parts.map((s) => `${counts[s]} ${s}`).join(", ") || "none yet"}`;
  return (
    <div class="progress" role="progressbar" aria-valuemin={0} aria-valuemax={all} aria-valuenow={ended} aria-label={text} title={text}>
      {parts.map((s) => <i key={s} class={`fill-${s}`} style={{ width: `${(100 * counts[s]) / all}%` }} />)}
    </div>
  );
}

/** A row of buttons, one of them selected, each with a number. */
export function Chips<T extends string>(props: { label: string; chosen: T; options: { id: T; label: string; count?: number | undefined }[]; choose: (id: T) => void }) {
  return (
    <div class="chips" role="group" aria-label={props.label}>
      {props.options.map((o) => (
        <button key={o.id} type="button" class={`chip chip-${o.id}`} aria-pressed={o.id === props.chosen} onClick={() => props.choose(o.id)}>
          {o.label}{o.count !== undefined && <> <b>{count(o.count)}</b></>}
        </button>
      ))}
    </div>
  );
}

export function Toggle(props: { label: string; on: boolean; change: (on: boolean) => void; title?: string; disabled?: boolean }) {
  return (
    <label class="toggle" title={props.title}>
      <input type="checkbox" checked={props.on} disabled={props.disabled} onChange={(e) => props.change(e.currentTarget.checked)} />
      {props.label}
    </label>
  );
}

/** What may come while people look on: until then its place is kept, so that nothing beside or
 * below it moves. `keeps`: whether it may come at all. */
export function Coming({ there, keeps, like, children }: { there: boolean; keeps: boolean; /** What is as wide. */ like: string; children: ComponentChildren }) {
  return there || keeps ? <span class="late">{there ? children : <span class="button coming" aria-hidden="true">{like}</span>}</span> : null;
}

/** A confirmation of an action that cannot be undone; it opens when `open` becomes true. */
export function Confirm(props: { open: boolean; title: string; action: string; children: ComponentChildren; yes: () => void; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    if (props.open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [props.open]);
  // The event arrives later; the dialog may be open again by then.
  const closed = () => { if (dialog.current?.open === false) props.close(); };
  return (
    <dialog ref={dialog} onClose={closed} aria-labelledby="confirm-title">
      <h2 id="confirm-title">{props.title}</h2>
      <p>{props.children}</p>
      <form method="dialog" class="actions">
        <button type="submit" onClick={props.close}>Keep it</button>
        <button type="submit" class="danger" onClick={() => { props.close(); props.yes(); }}>{props.action}</button>
      </form>
    </dialog>
  );
}
