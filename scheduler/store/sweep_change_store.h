/* What changes of a sweep that exists. Strings that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_SWEEP_CHANGE_STORE_H
#define ASSAY_SCHEDULER_STORE_SWEEP_CHANGE_STORE_H

#include "base/arena.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/sweep/trial_state.h"

/* AS_E_CONFLICT: its state is not `from`. A final state sets finished_at. A sweep that completes
 * keeps the reason for which it began to finish. */
AS_MUST_CHECK as_status store_sweep_move(struct tx *t, int64_t key, sweep_state from,
                                         sweep_state to, const char *reason, struct as_err *err);
/* Store other limits with the document that holds them. set_max_trials: the planned trials become
 * l->max_trials and the known results, but no fewer than exist; else they stay. The caller holds
 * the row. */
AS_MUST_CHECK as_status store_sweep_limit(struct tx *t, int64_t key, const char *document,
                                          const struct sweep_limits *l, bool set_max_trials,
                                          struct as_err *err);
/* Store another priority with the document that holds it. The caller holds the row. */
AS_MUST_CHECK as_status store_sweep_prioritize(struct tx *t, int64_t key, const char *document,
                                               int64_t priority, struct as_err *err);
/* Store the tags of this document, with the document. The caller holds the row. */
AS_MUST_CHECK as_status store_sweep_tag(struct tx *t, int64_t key, const char *document,
                                        struct as_err *err);
/* Store other remarks, and read them; NULL: none. The caller holds the row. AS_E_NOT_FOUND: the
 * sweep was deleted. */
AS_MUST_CHECK as_status store_sweep_remark(struct tx *t, int64_t key, const char *remarks,
                                           struct as_err *err);
AS_MUST_CHECK as_status store_sweep_remarks(struct tx *t, struct arena *a, int64_t key,
                                            const char **ret, struct as_err *err);
/* Record what a user changed (JSON). `by`: the id of the token; NULL: none. The caller holds the
 * sweep's row. */
AS_MUST_CHECK as_status store_sweep_change_add(struct tx *t, int64_t key, const char *by,
                                               const char *changes, struct as_err *err);
/* The latest `limit` changes, newest first. */
AS_MUST_CHECK as_status store_sweep_changes(struct tx *t, struct arena *a, int64_t key,
                                            int64_t limit, struct sweep_change_row **ret,
                                            size_t *ret_n, struct as_err *err);
/* The sweep gets no more trials. */
AS_MUST_CHECK as_status store_sweep_exhausted(struct tx *t, int64_t key, struct as_err *err);
AS_MUST_CHECK as_status store_sweep_started(struct tx *t, int64_t key, struct as_err *err);
/* Make room for n known results. */
AS_MUST_CHECK as_status store_sweep_known(struct tx *t, int64_t key, int64_t n, struct as_err *err);
/* A suggestion of a method that learns became a trial: store the search state that it left (JSON,
 * NULL: none) and its mark. */
AS_MUST_CHECK as_status store_sweep_searched(struct tx *t, int64_t key, const char *state,
                                             int64_t mark, struct as_err *err);

#endif
