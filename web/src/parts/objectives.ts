/* The objectives and the constrained metrics of a sweep, in the words of the CLI. */
import type * as Api from "../api/types";
import type { Column, Table } from "../data/columns";
import { own, toNumber } from "../format";

/** The names of the objectives and then of the constrained metrics, each once. */
export const judgedBy = (sweep: Api.Sweep): string[] => [...new Set([...sweep.metrics.map((m) => m.name), ...sweep.constraints.map((c) => c.metric)])];

/** "latency_ms <= 20", "0.1 <= share <= 0.5" */
export function boundsOf(c: Api.OutcomeConstraint): string {
  if (c.max === undefined) return `${c.metric} >= ${c.min}`;
  return `${c.min === undefined ? "" : `${c.min} <= `}${c.metric} <= ${c.max}`;
}

/** The bounds for a place beside the metric's name: "<= 20", "0.1 to 0.5". */
export function limitsOf(c: Api.OutcomeConstraint): string {
  if (c.min !== undefined && c.max !== undefined) return `${c.min} to ${c.max}`;
  return c.max === undefined ? `>= ${c.min}` : `<= ${c.max}`;
}

export const metricOf = (trial: Api.Trial, name: string): number | null => toNumber(own(trial.metrics, name));
/** The name of the column that has a metric's values: that of the sweep's own metric has them as they count. */
export const valueColumn = (sweep: Api.Sweep, name: string): string => (name === sweep.metric.name ? "value" : `metric:${name}`);
export const metricColumn = (table: Table, name: string): Column | undefined => table.column(`metric:${name}`);
/** The bounds in full, for a title. */
export const fullMetric = (trial: Api.Trial, name: string): string => String(own(trial.metrics, name) ?? "");

/** Whether this value of a metric breaks a bound of the sweep. */
export function breaks(sweep: Api.Sweep, name: string, value: number | null): boolean {
  return value !== null && sweep.constraints.some((c) => c.metric === name && (value < (c.min ?? -Infinity) || value > (c.max ?? Infinity)));
}

/** Whether the trial completed but broke a bound. Such a trial is never among the best. */
export const isInfeasible = (trial: Api.Trial): boolean => trial.feasible === false;
