/* Ask and tell by hand: take a trial of an ask and tell sweep, and type what came of it. The trials that
 * this page holds are kept for its client's name, so that the next question after a reload finds them again; until then
 * they are kept here with what was typed, as views are left. */
import { signal, type Signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { call } from "../api/http";
import type * as Api from "../api/types";
import { inOrder, param, valueText } from "../format";
import { judgedBy } from "../parts/objectives";
import { attempt } from "../parts/small";

const CLIENT = "page";
const LEASE_MS = 24 * 3_600_000; // so long a trial waits for whoever types
const MOST = 5; // trials at once

/** A number as people type it; null: it is none. NaN and infinities are values too. */
const entered = (text: string): Api.Number | null => {
  const trimmed = text.trim();
  if (["NaN", "Infinity", "-Infinity"].includes(trimmed)) return trimmed as Api.Number;
  const v = Number(trimmed);
  return trimmed === "" || Number.isNaN(v) ? null : v;
};

interface Desk {
  held: readonly Api.Suggestion[];
  said: string;
  /** What was typed, by trial and metric. */
  typed: Readonly<Record<number, Readonly<Record<string, string>>>>;
}

/** By sweep. */
const desks = new Map<string, Signal<Desk>>();

function deskOf(sweep: string): Signal<Desk> {
  const known = desks.get(sweep) ?? signal<Desk>({ held: [], said: "", typed: {} });
  desks.set(sweep, known);
  return known;
}

export function ByHand({ sweep }: { sweep: Api.Sweep }) {
  const desk = deskOf(sweep.id);
  const { held, said } = desk.value;
  const [busy, setBusy] = useState(false);
  const ask = (more: number) => attempt(async () => {
    setBusy(true);
    try {
      const answer = await call("POST /v1/sweeps/{sweep}/suggestions", { path: { sweep: sweep.id }, body: { client: CLIENT, count: held.length + more, lease_ms: LEASE_MS, wait_ms: 5000 } });
      desk.value = { ...desk.peek(), held: answer.items, said: answer.items.length > 0 ? "" : answer.done ? "The sweep has ended." : "There is no trial to try now." };
    } finally {
      setBusy(false);
    }
  });
  const told = (number: number, what: string) => {
    desk.value = { ...desk.peek(), held: desk.peek().held.filter((s) => s.number !== number), said: `Trial #${number} ${what}.` };
  };
  const type = (number: number, values: Readonly<Record<string, string>>) => {
    desk.value = { ...desk.peek(), typed: { ...desk.peek().typed, [number]: values } };
  };
  return (
    <div class="by-hand">
      <p><button type="button" disabled={busy || sweep.state === "paused" || held.length >= MOST} onClick={() => ask(1)}>{held.length === 0 ? "Ask for a trial" : "Ask for another"}</button> <span role="status">{sweep.state === "paused" ? "The sweep is paused: no trial is handed out until it is resumed." : said}</span></p>
      {held.map((s) => <Held key={s.number} sweep={sweep} suggestion={s} values={desk.value.typed[s.number] ?? {}} type={(values) => type(s.number, values)} told={told} />)}
    </div>
  );
}

interface HeldProps {
  sweep: Api.Sweep;
  suggestion: Api.Suggestion;
  values: Readonly<Record<string, string>>;
  type: (values: Readonly<Record<string, string>>) => void;
  told: (number: number, what: string) => void;
}

function Held({ sweep, suggestion, values, type, told }: HeldProps) {
  const names = judgedBy(sweep);
  const { number } = suggestion;
  const read = names.map((n) => [n, entered(values[n] ?? "")] as const);
  const tell = (outcome: "completed" | "failed" | "released") => attempt(async () => {
    const body: Api.SuggestionCompletion = { client: CLIENT, attempt: suggestion.attempt, outcome };
    if (outcome === "completed") body.metrics = Object.fromEntries(read.flatMap(([n, v]) => (v === null ? [] : [[n, v]])));
    await call("POST /v1/sweeps/{sweep}/suggestions/{number}/complete", { path: { sweep: sweep.id, number }, body });
    told(number, outcome === "completed" ? "is told" : outcome === "failed" ? "has failed" : "is given back");
  });
  return (
    <form class="held" aria-label={`Trial #${number}`} onSubmit={(e) => { e.preventDefault(); void tell("completed"); }}>
      <h3>#{number}</h3>
      <dl class="pairs">{inOrder(suggestion.params, sweep).map(([k, v]) => <div key={k}><dt>{k}</dt><dd title={valueText(v)}>{param(v)}</dd></div>)}</dl>
      {names.map((n) => {
        const isWrong = (values[n] ?? "").trim() !== "" && entered(values[n]!) === null;
        return <p key={n}><label>{n} <input type="text" inputMode="decimal" autocomplete="off" aria-invalid={isWrong} value={values[n] ?? ""} onInput={(e) => type({ ...values, [n]: e.currentTarget.value })} /></label>{isWrong && <span class="bad" role="status">This is no number such as 0.5 or 1e-3.</span>}</p>;
      })}
      <p class="actions">
        <button type="button" class="quiet" onClick={() => tell("released")}>Give it back</button>
        <button type="button" class="quiet" onClick={() => tell("failed")}>It failed</button>
        <button type="submit" class="primary" disabled={read.some(([, v]) => v === null)}>Tell</button>
      </p>
    </form>
  );
}
