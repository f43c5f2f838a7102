/* Table regret_check: what sweeps can still gain at most. Strings and rows that come out are in the
 * arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_REGRET_STORE_H
#define ASSAY_SCHEDULER_STORE_REGRET_STORE_H

#include "base/arena.h"
#include "scheduler/rows/regret_row.h"
#include "scheduler/store/tx.h"

/* A sweep with completed trials that are in no bound. */
struct regret_due {
    int64_t key;
    int64_t completed; /* trials */
    bool is_between;   /* the next scheduled count is not reached */
    bool may_end;      /* the sweep has a limit that its bounds are compared with */
    bool has_ended;
    bool is_over; /* only of store_regret_ended(): nothing is left to compute, it can be closed */
};

#define REGRET_DUE_MAX 100 /* sweeps of one look */

/* Such sweeps that live, with at least `first` completed trials: at most REGRET_DUE_MAX, first
 * those that have a limit of their bound, then those that are most behind by their trials. Reads
 * three or four pages for each sweep that lives: some 4 us. */
AS_MUST_CHECK as_status store_regret_due(struct tx *t, struct arena *a, int64_t first,
                                         struct regret_due **ret, size_t *ret_n,
                                         struct as_err *err);

/* Sweeps that have ended and are open, at most REGRET_DUE_MAX. Reads those alone. */
AS_MUST_CHECK as_status store_regret_ended(struct tx *t, struct arena *a, int64_t first,
                                           struct regret_due **ret, size_t *ret_n,
                                           struct as_err *err);

/* Close those of these sweeps that have ended and whose completed trials are all in a bound, or
 * fewer than `first`. Locks their rows. A change of a sweep's state opens it again. */
AS_MUST_CHECK as_status store_regret_close(struct tx *t, int64_t first, const int64_t *keys,
                                           size_t n, struct as_err *err);

/* Open a sweep that got results after its end. */
AS_MUST_CHECK as_status store_regret_open(struct tx *t, int64_t sweep_key, struct as_err *err);

/* Where the bounds of a sweep stand. */
struct regret_next {
    int64_t due;       /* the count of completed trials after which the next one is due; 0: none is
                          computed */
    int64_t completed; /* trials so far */
    bool may_end;      /* the sweep has a limit that its bounds are compared with */
};

/* AS_E_NOT_FOUND: the sweep was deleted. */
AS_MUST_CHECK as_status store_regret_next(struct tx *t, int64_t sweep_key, struct regret_next *ret,
                                          struct as_err *err);

struct regret_added {
    bool is_kept; /* false: it, or a later one, is kept already */
    bool may_end; /* as above */
    const char *sweep, *state;
};

/* Keep a bound if the one after `due` completed trials is still the next scheduled one, and none of
 * so many trials is kept; from now on that after `next` is. next == due: the bound is one between
 * two counts. It replaces those between. made_ms is not read. Locks the sweep's row. */
AS_MUST_CHECK as_status store_regret_add(struct tx *t, struct arena *a, int64_t sweep_key,
                                         int64_t due, const struct regret_check *x, int64_t next,
                                         struct regret_added *ret, struct as_err *err);

/* All bounds of a sweep. */
AS_MUST_CHECK as_status store_regret_list(struct tx *t, struct arena *a, int64_t sweep_key,
                                          struct regret_check_list *ret, struct as_err *err);

/* The latest one, and the limit that it is compared with (NaN: none). AS_E_NOT_FOUND. */
struct regret_latest {
    struct regret_check check;
    double stop_regret, stop_relative;
};
AS_MUST_CHECK as_status store_regret_latest(struct tx *t, int64_t sweep_key,
                                            struct regret_latest *ret, struct as_err *err);

#endif
