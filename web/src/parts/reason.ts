/* Fields of the reason for the parameters of a trial that the page draws; docs/search.md lists them all. The reason in
 * words is the search's own (`why` of the trial). */
import type * as Api from "../api/types";
import { toNumber } from "../format";

export interface Prediction {
  mean: number;
  deviation: number;
}

const isObject = (v: unknown): v is Record<string, unknown> => v !== null && typeof v === "object" && !Array.isArray(v);
const number = (v: unknown): number | null => (typeof v === "number" || typeof v === "string" ? toNumber(v as Api.Number) : null);
const whole = (v: unknown): number => (typeof v === "number" ? v : 0);

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
