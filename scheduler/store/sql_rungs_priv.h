/* What statements of several files say about rungs: struct rung_near of a trial, as columns, and
 * the results of a trial as JSON. `t` is the row of the trial, `s` that of its sweep. */
#ifndef ASSAY_SCHEDULER_STORE_SQL_RUNGS_PRIV_H
#define ASSAY_SCHEDULER_STORE_SQL_RUNGS_PRIV_H

/* The trial may be absent. Arrays begin at 1. */
#define SQL_RUNG_NEXT(s, t) "case when " t ".decision is null then " s ".rungs[" t ".rung + 1] end"
#define SQL_RUNG_AFTER(s, t)                                                                       \
    s ".rungs[case when " s ".rungs_late or " t ".step >= " s ".rungs[" t ".rung + 1] then " t     \
      ".rung + 1 else " t ".rung + 2 end]"

/* The step after which the steps of trial t are its own (migration 0042); 0: all are. */
#define SQL_OWN_AFTER "coalesce(own_after(t.sweep_key, t.number, t.fork_step), 0)"

/* JSON has no NaN. */
#define SQL_FINITE(v) "case when " v " not in ('NaN', 'Infinity', '-Infinity') then " v " end"
/* Infinite values are words: ranks depend on them. */
#define SQL_NUMBER(v)                                                                              \
    "case when " v " in ('Infinity', '-Infinity') then to_jsonb(" v "::text) when " v              \
    " <> 'NaN' then to_jsonb(" v ") end"
/* Null for a trial that has reached none, without a look at the table. */
#define SQL_RUNGS(t)                                                                               \
    "case when " t                                                                                 \
    ".rung > 0 then (select json_agg(json_build_object('rung', r.rung, 'step', r.step, 'value', "  \
    "" SQL_FINITE("r.value") ", 'values', (select json_agg(" SQL_NUMBER(                           \
        "v.x") " order by v.place) from unnest(r.objectives) with ordinality as v(x, place)), "    \
               "'rank', r.rank, 'of', r.among, 'decision', r.decision, 'reason', r.reason, "       \
               "'feasible', r.feasible, 'seq', r.seq, 'promoted_seq', r.promoted_seq, "            \
               "'promoted_reason', r.promoted_why) order by "                                      \
               "r.rung) from rung_result "                                                         \
               "r where r.sweep_key = " t ".sweep_key and r.number = " t ".number) end"

#endif
