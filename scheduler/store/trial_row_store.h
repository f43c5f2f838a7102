/* What the API shows of trials. Strings that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_TRIAL_ROW_STORE_H
#define ASSAY_SCHEDULER_STORE_TRIAL_ROW_STORE_H

#include "base/arena.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_trial_get(struct tx *t, struct arena *a, int64_t sweep_key,
                                        int64_t number, struct trial_row *ret, struct as_err *err);

/* Read many trials, each into the arena of its place. AS_E_NOT_FOUND: one is not there. */
AS_MUST_CHECK as_status store_trial_get_many(struct tx *t, const struct trial_key *keys, size_t n,
                                             struct arena *const *arenas, struct trial_row *ret,
                                             struct as_err *err);

/* The place where a list continues: after the trial with this sort key and this number. */
struct trial_place {
    bool set;
    bool has_key;
    double key;
    int64_t number;
};

/* At most q->page.size trials by number, fewer when they pass PAGE_BYTES_MAX. *ret_next is set if
 * there are more. Lists by other keys: trial_orders.h. */
AS_MUST_CHECK as_status store_trial_list(struct tx *t, struct arena *a, int64_t sweep_key,
                                         const struct trial_query *q,
                                         const struct trial_place *after, struct trial_page *ret,
                                         struct trial_place *ret_next, struct as_err *err);

/* The best `top` completed, feasible trials after a place; pages as above. */
AS_MUST_CHECK as_status store_trial_best(struct tx *t, struct arena *a, int64_t sweep_key,
                                         bool maximize, int64_t top,
                                         const struct trial_place *after, struct trial_page *ret,
                                         struct trial_place *ret_next, struct as_err *err);

/* The newest reason of a suggestion that a model made, in `a`; NULL: it has no `no_effect`, or the
 * newest REASON_AMONG trials have no such reason. */
#define REASON_AMONG 64
AS_MUST_CHECK as_status store_trial_newest_reason(struct tx *t, struct arena *a, int64_t sweep_key,
                                                  const char **ret, struct as_err *err);

#endif
