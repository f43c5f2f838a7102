/* The table of trials that the API sent one by one. */
import type * as Api from "../api/types";
import { toNumber } from "../format";
import { MISSING, Store, type Column, type Table } from "./columns";

const time = (t: string | null | undefined): number => (t ? Date.parse(t) : NaN);

function numbers(name: string, trials: readonly Api.Trial[], of: (t: Api.Trial) => number | null): Column {
  return { name, kind: "number", values: Float64Array.from(trials, (t) => of(t) ?? NaN) };
}

function words(name: string, trials: readonly Api.Trial[], of: (t: Api.Trial) => string | undefined): Column {
  const index = new Map<string, number>();
  const values = Uint32Array.from(trials, (t) => {
    const word = of(t);
    if (word === undefined) return MISSING;
    if (!index.has(word)) index.set(word, index.size);
    return index.get(word)!;
  });
  return { name, kind: "words", values, words: [...index.keys()] };
}

/** A parameter is a column of numbers if all its values are numbers. */
function paramColumn(name: string, trials: readonly Api.Trial[]): Column {
  const of = (t: Api.Trial): Api.Value | undefined => (Object.hasOwn(t.params, name) ? t.params[name] : undefined);
  if (trials.every((t) => of(t) === undefined || typeof of(t) === "number")) return numbers(`param:${name}`, trials, (t) => (of(t) as number | undefined) ?? null);
  return words(`param:${name}`, trials, (t) => { const v = of(t); return v === undefined || typeof v === "string" ? v : JSON.stringify(v); });
}

export function tableOfTrials(trials: readonly Api.Trial[], sweep: Api.Sweep): Table {
  const metrics = [...new Set([...sweep.metrics.map((m) => m.name), ...sweep.constraints.map((c) => c.metric)])];
  const store = new Store();
  store.take({
    version: "0", whole: true, number: Uint32Array.from(trials, (t) => t.number),
    columns: [
      words("state", trials, (t) => t.state), numbers("value", trials, (t) => toNumber(t.value)), numbers("infeasible", trials, (t) => Number(t.feasible === false)),
      numbers("attempt", trials, (t) => t.attempt), numbers("started_at", trials, (t) => time(t.started_at)), numbers("ended_at", trials, (t) => time(t.finished_at)),
      ...Object.keys(sweep.document.parameters ?? {}).map((name) => paramColumn(name, trials)),
      ...metrics.map((name) => numbers(`metric:${name}`, trials, (t) => (Object.hasOwn(t.metrics ?? {}, name) ? toNumber(t.metrics![name]) : null))),
    ],
  });
  return store.table("0");
}
