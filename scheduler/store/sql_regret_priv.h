/* What statements of several files say about the bounds of a sweep `s`: the columns of a bound `r`,
 * and whether the latest ones are within limits.stop_when. */
#ifndef ASSAY_SCHEDULER_STORE_SQL_REGRET_PRIV_H
#define ASSAY_SCHEDULER_STORE_SQL_REGRET_PRIV_H

#include "scheduler/store/sql_columns_priv.h"

/* The columns as fields of a row: `at` is empty, or the field that holds the bound. */
#define SQL_REGRET_FIELDS(FIRST, NEXT, at)                                                         \
    FIRST(i64, at completed, "r.completed")                                                        \
    SQL_REGRET_AFTER(NEXT, at)
#define SQL_REGRET_NEXT_FIELDS(NEXT, at)                                                           \
    NEXT(i64, at completed, "r.completed")                                                         \
    SQL_REGRET_AFTER(NEXT, at)
#define SQL_REGRET_AFTER(NEXT, at)                                                                 \
    NEXT(i64, at seq, "r.seq")                                                                     \
    NEXT(f64, at bound, "coalesce(r.bound, 'NaN')")                                                \
    NEXT(f64, at relative, "coalesce(r.relative, 'NaN')")                                          \
    NEXT(bool, at enough, "r.enough")                                                              \
    NEXT(bool, at has_best, "r.best is not null")                                                  \
    NEXT(i64, at best, "coalesce(r.best, 0)")                                                      \
    NEXT(f64, at best_mean, "coalesce(r.best_mean, 0)")                                            \
    NEXT(f64, at best_deviation, "coalesce(r.best_deviation, 0)")                                  \
    NEXT(f64, at best_noise, "coalesce(r.best_noise, 0)")                                          \
    NEXT(i64, at made_ms, SQL_MS("r.made_at"))

#define SQL_REGRET_LATEST                                                                          \
    "(select * from regret_check where sweep_key = s.key order by completed desc limit 1) r"

/* The same without one between two counts: what stop_when reads. */
#define SQL_REGRET_SCHEDULED                                                                       \
    "(select * from regret_check where sweep_key = s.key and scheduled order by completed desc "   \
    "limit 1) r"

/* One bound may be too certain for once, so the latest three are compared (decision 4021). Reads
 * four entries of an index at most, and nothing without the limit. */
#define SQL_LITTLE_LEFT                                                                            \
    "case when coalesce(s.stop_regret, s.stop_relative) is null then false else (select count(*) " \
    "= 3 and bool_and(r.enough and (coalesce(r.bound <= s.stop_regret, false) or "                 \
    "coalesce(r.relative <= s.stop_relative, false))) and max(r.completed) >= s.stop_min_trials "  \
    "from (select * from regret_check where sweep_key = s.key and scheduled order by completed "   \
    "desc limit 3) r) end"

#endif
