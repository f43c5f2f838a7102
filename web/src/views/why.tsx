/* The reason for the parameters of a trial: the search's reason in words, its predictions, and the
 * results. */
import type { ComponentChildren } from "preact";
import type * as Api from "../api/types";
import { count, sig, toNumber } from "../format";
import { isOpen } from "../live/trial";
import { metricOf } from "../parts/objectives";
import { incumbentOf, predictionsOf, type Prediction } from "../parts/reason";
import { href } from "../route";

/* Fields that have their own row below; any other field is shown as it is. */
const TOLD = new Set(["method", "phase", "acquisition", "value", "runner_up", "predicted", "incumbent", "observed", "failed", "pending", "trust_region", "branch", "stagnant", "point", "cell", "cells", "fallback", "model", "candidates", "fit", "index", "seen", "repeat"]);
const SPAN = 3; // deviations to either side in the picture of a prediction

const MODELS: Record<string, string> = { warped: "of the warped values", plain: "of the plain values", smooth: "of the plain values, along their trend", outcomes: "of the constrained metrics" };

/** Any JSON value as a short line. */
function plain(value: unknown): string {
  if (typeof value === "number") return sig(value);
  if (Array.isArray(value)) return value.map(plain).join(value.some((v) => typeof v === "object") ? "; " : ", ");
  if (typeof value !== "object" || value === null) return String(value);
  const all = Object.entries(value).map(([k, v]) => `${spaced(k)}${typeof v === "object" ? ":" : ""} ${plain(v)}`);
  return all.join(Object.values(value).every((v) => typeof v === "object") ? "; " : ", ");
}

const spaced = (name: string) => name.replaceAll("_", " ");
const capital = (words: string) => `${words.charAt(0).toUpperCase()}${words.slice(1)}`;

export function WhyPanel({ trial, sweep }: { trial: Api.TrialDetail; sweep: Api.Sweep | null }) {
  const s = trial.suggestion;
  const metrics = sweep?.metrics ?? [];
  if (!s || trial.why === "") return null;
  const rows: [string, ComponentChildren][] = [...rowsOf(s, trial), ...Object.entries(s).filter(([k]) => !TOLD.has(k)).map(([k, v]): [string, ComponentChildren] => [capital(spaced(k)), plain(v)])];
  return (
    <section class="panel" aria-label="Why these parameters">
      <div class="bar"><h2>Why these parameters</h2></div>
      <p class="words" data-testid="why">{capital(trial.why)}.</p>
      {predictionsOf(s).map((p, i) => <Outcome key={i} name={metrics[i]?.name ?? ""} p={p} came={cameOf(trial, metrics, i)} none={whyNone(trial)} />)}
      <dl class="pairs">{rows.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
    </section>
  );
}

/** Why objective i has no result: the trial has not ended, or it ended without one. */
function whyNone(trial: Api.Trial): string {
  if (isOpen(trial.state)) return "not known yet";
  return trial.state === "completed" ? "not measured" : `no result: the trial ${trial.state === "failed" ? "failed" : `was ${trial.state}`}`;
}

/** The result of objective i; null while there is none. */
function cameOf(trial: Api.Trial, metrics: readonly Api.Objective[], i: number): number | null {
  if (trial.state !== "completed") return null;
  return i === 0 ? toNumber(trial.value) : metricOf(trial, metrics[i]?.name ?? "");
}

function rowsOf(s: Api.SuggestionReason, trial: Api.TrialDetail): [string, ComponentChildren][] {
  const rows: [string, ComponentChildren][] = [];
  const add = (name: string, value: unknown, shown?: ComponentChildren) => { if (value !== undefined && value !== null) rows.push([name, shown ?? plain(value)]); };
  const incumbent = incumbentOf(s);
  add("Method", s["method"]);
  add("Phase", s["phase"], s["phase"] === "initial" ? "initial design" : undefined);
  add("Model", s["model"], MODELS[String(s["model"])]);
  add("Acquisition", s["acquisition"], <>{plain(s["acquisition"])}{s["value"] !== undefined && <span title="Its value at the point chosen"> {plain(s["value"])}</span>}</>);
  add("Next best", s["runner_up"], <span title="The acquisition's value at the best point that was not chosen">{plain(s["runner_up"])}</span>);
  add("Trust region", s["trust_region"], `side ${plain(s["trust_region"])}`);
  add("Repeats", s["repeat"], <a href={href(["sweeps", trial.sweep, "trials", Number(s["repeat"])])}>#{plain(s["repeat"])}</a>);
  if (incumbent) rows.push(["Best so far", <><a href={href(["sweeps", trial.sweep, "trials", incumbent.number])}>#{incumbent.number}</a> {sig(incumbent.value)}</>]);
  add("Results seen", s["observed"], `${plain(s["observed"])}${s["failed"] ? `, ${plain(s["failed"])} failed` : ""}`);
  add("Pending then", s["pending"], typeof s["pending"] === "number" ? count(s["pending"]) : undefined);
  add("Points compared", s["candidates"], typeof s["candidates"] === "number" ? count(s["candidates"]) : undefined);
  add("Suggestion", trial.index, typeof trial.index === "number" ? `the search's ${nth(trial.index + 1)}` : undefined);
  add("Saw results up to", trial.seen, typeof trial.seen === "number" ? (trial.seen === 0 ? "none" : `the ${nth(trial.seen)}`) : undefined);
  return rows;
}

function nth(n: number): string {
  const end = n % 100 >= 11 && n % 100 <= 13 ? "th" : ["th", "st", "nd", "rd"][n % 10] ?? "th";
  return `${count(n)}${end}`;
}

/** "0.3 deviations below": the error of the prediction in units of its own deviation. */
function verdict(p: Prediction, came: number): string {
  const off = (came - p.mean) / p.deviation;
  if (!Number.isFinite(off)) return "";
  return Math.abs(off) < 0.05 ? "as predicted" : `${sig(Math.abs(off), 2)} deviations ${off > 0 ? "above" : "below"}`;
}

/** Mean and deviation as a band, the result as a dot on it; a result beyond SPAN deviations is at
 * the edge. */
function Outcome({ name, p, came, none }: { name: string; p: Prediction; came: number | null; none: string }) {
  const at = came === null ? null : (came - p.mean) / p.deviation;
  const place = (z: number) => `${(100 * (Math.min(SPAN, Math.max(-SPAN, z)) + SPAN)) / (2 * SPAN)}%`;
  return (
    <figure class="outcome">
      <figcaption>
        <span><bdi>{name}</bdi> predicted <b title={`${p.mean} ± ${p.deviation}`}>{sig(p.mean)} ± {sig(p.deviation, 2)}</b></span>
        <span>{came === null ? <span class="faint" data-testid="none">{none}</span> : <>came out <b title={String(came)} data-testid="came">{sig(came)}</b> <span class="faint">{verdict(p, came)}</span></>}</span>
      </figcaption>
      {p.deviation > 0 && (
        <div class="gauge" aria-hidden="true">
          <i class="two" style={{ left: place(-2), right: `calc(100% - ${place(2)})` }} /><i class="one" style={{ left: place(-1), right: `calc(100% - ${place(1)})` }} /><i class="mean" />
          {at !== null && Number.isFinite(at) && <i class={Math.abs(at) > SPAN ? "came out" : "came"} style={{ left: place(at) }} />}
        </div>
      )}
    </figure>
  );
}
