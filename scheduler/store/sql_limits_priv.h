/* Limits of a sweep that need more than its row: its wall-clock time, its target, its steps, and
 * whether a trial has a value at a rung that compares. They are about the row `s` of the view
 * sweep. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_SQL_LIMITS_PRIV_H
#define ASSAY_SCHEDULER_STORE_SQL_LIMITS_PRIV_H

/* Milliseconds since the sweep began or ran on. A sweep that was created paused has not begun. */
#define RUN_MS                                                                                     \
    "greatest(0, coalesce(extract(epoch from now() - coalesce(reopened_at, started_at, case when " \
    "state <> 'paused' then created_at end)) * 1000, 0))"

/* The time between an end and running on does not count: spent_ms has what came before. */
#define WALL_TIME_OVER                                                                             \
    "coalesce(spent_ms + case when state in ('running', 'paused') then " RUN_MS                    \
    " else 0 end > wall_time_ms, false)"

/* Nothing runs, and what waits, or would be made, has no steps left to its next rung. */
#define STEPS_OVER                                                                                 \
    "case when s.max_steps is null or s.n_running > 0 or (s.n_queued = 0 and s.n_total >= "        \
    "s.planned) then false else steps_room(s.key) = 0 end"
/* No trial has a value at a rung that compares: the last one does not. */
#define NONE_BELOW_LAST                                                                            \
    "s.n_rung_results = 0 or not exists (select from rung_result r where r.sweep_key = s.key "     \
    "and r.rung < cardinality(s.rungs) - 1)"

/* A completed, feasible trial of sweep `s` is at least as good as the target. Reads one entry of
 * the index trial_best, and nothing if there is no target. */
#define REACHED(COMPARE)                                                                           \
    "exists (select from trial t where t.sweep_key = s.key and t.result " COMPARE " s.target)"
#define TARGET_REACHED                                                                             \
    "case when s.target is null then false when s.goal = 'maximize' then " REACHED(                \
        ">=") " else " REACHED("<=") " end"

#define IS_STRICT "case when s.rungs_strict then " NONE_BELOW_LAST " else false end"

#endif
