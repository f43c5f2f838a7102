/* Statements on the counts of sweeps, most of which change them.
 *
 * Table sweep_count has one row for each sweep, and an update raises its version (migration 0035).
 * The newest version is found from the end of the index, where none that cannot be removed yet
 * stands before it. The transaction holds the sweep, so it stays the newest.
 *
 *     SQL_COUNTS_CHANGE "planned = c.planned + 1" SQL_COUNTS_OF_FIRST
 *     SQL_COUNTS_CHANGE "planned = c.planned + f.n from l f" SQL_COUNTS_OF_EACH */
#ifndef ASSAY_SCHEDULER_STORE_SQL_COUNTS_PRIV_H
#define ASSAY_SCHEDULER_STORE_SQL_COUNTS_PRIV_H

#include "scheduler/store/pg_priv.h"

#define SQL_COUNTS_CHANGE "update sweep_count c set version = c.version + 1, "

#define SQL_NEWEST_COUNT(key)                                                                      \
    "(select n.sweep_key, n.version from sweep_count n where n.sweep_key = " key                   \
    " order by n.version desc limit 1)"

/* The most turns that a sweep which runs has had (turn_store.c). */
#define SQL_MOST_TURNS "(select max(m.turns) from sweep_count m where m.is_running)"

/* Of the sweep whose key is $1. */
#define SQL_COUNTS_OF_FIRST " where (c.sweep_key, c.version) = " SQL_NEWEST_COUNT("$1")

/* Of the sweeps of a list `f` with a column sweep_key. Both columns come from `v`: otherwise a plan
 * may look for all versions of a sweep. */
#define SQL_COUNTS_OF_EACH                                                                         \
    " cross join lateral " SQL_NEWEST_COUNT("f.sweep_key") " v where " SQL_JOINED(                 \
        "c.sweep_key", "v.sweep_key") " and " SQL_JOINED_NEXT("c.version", "v.version")

/* The counts of trials as columns of a row with the field `counts`. `s` is the view sweep. */
#define SQL_COUNT_FIELDS(NEXT)                                                                     \
    NEXT(i64, counts.by_state[TRIAL_QUEUED], "s.n_queued")                                         \
    NEXT(i64, counts.by_state[TRIAL_RUNNING], "s.n_running")                                       \
    NEXT(i64, counts.by_state[TRIAL_PAUSED], "s.n_paused")                                         \
    NEXT(i64, counts.by_state[TRIAL_COMPLETED], "s.n_completed")                                   \
    NEXT(i64, counts.by_state[TRIAL_PRUNED], "s.n_pruned")                                         \
    NEXT(i64, counts.by_state[TRIAL_FAILED], "s.n_failed")                                         \
    NEXT(i64, counts.by_state[TRIAL_CANCELLED], "s.n_cancelled")                                   \
    NEXT(i64, counts.total, "s.n_total")

#endif
