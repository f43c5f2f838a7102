/* The reason for the parameters of a trial in words, equal to those of `assay trial`
 * (cli/view/reason.c), including every digit. docs/search.md lists the fields. */
import type * as Api from "../api/types";
import { toNumber } from "../format";

export interface Prediction {
  mean: number;
  deviation: number;
}

const ACQUISITIONS: Record<string, string> = {
  ucb: "chosen by upper confidence bound",
  logei: "chosen by expected improvement",
  quadratic: "chosen as the minimum of a quadratic through the best trials",
  pe: "chosen to explore: where the model is least certain among promising points",
  ehvi: "chosen by expected hypervolume improvement",
  feasibility: "chosen to keep the constraints: no trial has kept them yet",
};

const isObject = (v: unknown): v is Record<string, unknown> => v !== null && typeof v === "object" && !Array.isArray(v);
const number = (v: unknown): number | null => (typeof v === "number" || typeof v === "string" ? toNumber(v as Api.Number) : null);
const whole = (v: unknown): number => (typeof v === "number" ? v : 0);
const text = (v: unknown): string | null => (typeof v === "string" ? v : null);

/** A number as C's %g writes it with this many digits. */
export function general(value: number, digits: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const [mantissa = "", power = "0"] = value.toExponential(digits - 1).split("e");
  const e = Number(power);
  const trim = (t: string) => (t.includes(".") ? t.replace(/\.?0+$/, "") : t);
  if (e >= -4 && e < digits) return trim(value.toFixed(digits - 1 - e));
  return `${trim(mantissa)}e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`;
}

const short = (v: unknown): string => (typeof v === "number" ? general(v, 6) : typeof v === "string" ? v : "");

/** The predictions, in the order of the sweep's objectives; empty when no model chose the trial. */
export function predictionsOf(suggestion: Api.SuggestionReason | undefined): Prediction[] {
  const given = suggestion?.["predicted"];
  return (Array.isArray(given) ? given : isObject(given) ? [given] : []).map((p: unknown) => {
    const one = isObject(p) ? p : {};
    return { mean: number(one["mean"]) ?? NaN, deviation: number(one["deviation"]) ?? NaN };
  });
}

export function incumbentOf(suggestion: Api.SuggestionReason | undefined): { number: number; value: number | null } | null {
  const given = suggestion?.["incumbent"];
  return isObject(given) ? { number: whole(given["number"]), value: number(given["value"]) } : null;
}

function predictedWords(s: Api.SuggestionReason, metrics: readonly Api.Objective[]): string {
  const given = s["predicted"];
  const one = (p: unknown) => (isObject(p) ? `${short(p["mean"])} ± ${number(p["deviation"]) === null ? "" : general(number(p["deviation"]) ?? 0, 2)}` : " ± ");
  if (Array.isArray(given)) return given.length === 0 ? "" : `: predicted ${given.map((p, i) => `${metrics[i] ? `${metrics[i].name} ` : ""}${one(p)}`).join(", ")}`;
  return isObject(given) ? `: predicted ${one(given)}` : "";
}

function modelWords(s: Api.SuggestionReason, metrics: readonly Api.Objective[]): string {
  if (s["phase"] !== "model") {
    const fallback = text(s["fallback"]);
    return fallback !== null ? `drawn to fill the space, because there is no model: ${fallback}` : `point ${whole(s["point"])} of the initial design, which fills the space`;
  }
  const side = number(s["trust_region"]);
  const branch = s["branch"];
  const reach = isObject(branch) ? number(branch["optimistic"]) : null;
  const inside = isObject(branch) ? `, inside ${text(branch["parameter"]) ?? ""} = ${short(branch["value"])}${reach === null ? "" : `, which may still reach ${general(reach, 4)}`}` : "";
  const still = s["stagnant"] === true ? "; recent trials improved almost nothing" : "";
  return (ACQUISITIONS[text(s["acquisition"]) ?? ""] ?? "chosen by the model") + predictedWords(s, metrics) + (side === null ? "" : `, within a trust region of side ${general(side, 3)}`) + inside + still;
}

function seenWords(s: Api.SuggestionReason): string {
  const [observed, failed, pending] = [whole(s["observed"]), whole(s["failed"]), whole(s["pending"])];
  return `; ${observed} result${observed === 1 ? "" : "s"} seen${failed > 0 ? `, ${failed} failed` : ""}${pending > 0 ? `, ${pending} pending` : ""}`;
}

/** Methods that follow the order of the trials. */
function followerWords(s: Api.SuggestionReason, search: () => string): string {
  return (s["phase"] === "search" ? search() : modelWords(s, [])) + seenWords(s);
}

function evolutionWords(s: Api.SuggestionReason): string {
  const changed = s["changed"];
  return `trial ${whole(s["parent"])} with ${Array.isArray(changed) ? changed.join(" and ") : "?"} changed`;
}

function cmaesWords(s: Api.SuggestionReason): string {
  const step = number(s["step"]);
  const restarts = whole(s["restarts"]);
  return `drawn after ${whole(s["generation"])} generations${step === null ? "" : `, in steps of ${general(step, 2)} of the range`}${restarts > 0 ? `, restarted ${restarts} times` : ""}`;
}

function gpWords(s: Api.SuggestionReason, metrics: readonly Api.Objective[]): string {
  const best = s["incumbent"];
  return modelWords(s, metrics)
    + (isObject(best) ? `; the best so far was trial ${whole(best["number"])} with ${short(best["value"])}` : "")
    + seenWords(s);
}

/** The reason as a sentence without capital and full stop; "" when there is none. */
export function reasonWords(suggestion: Api.SuggestionReason | undefined, metrics: readonly Api.Objective[]): string {
  if (!suggestion) return "";
  const s = suggestion;
  const method: string = s.method;
  switch (method) {
    case "gp": return gpWords(s, metrics);
    case "tpe": return followerWords(s, () => `like the ${whole(s["good"])} best trials and unlike the others`);
    case "evolution": return followerWords(s, () => evolutionWords(s));
    case "cmaes": return followerWords(s, () => cmaesWords(s));
    case "grid": return `cell ${whole(s["cell"])} of the grid's ${whole(s["cells"])}`;
    case "sobol": return `point ${whole(s["point"])} of a Sobol sequence, which fills the space`;
    case "random": return "drawn at random";
    case "enqueued": return "enqueued by hand";
    case "known": return "a known result, added by hand";
    default: return method;
  }
}
