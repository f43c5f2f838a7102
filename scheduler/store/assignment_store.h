/* Trials that begin to run: the tables trial, attempt and event in one statement for all trials of
 * a sweep that one holder gets. The caller holds the sweep's row, so that nobody else changes the
 * state of its trials. Strings that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_HANDOUT_STORE_H
#define ASSAY_SCHEDULER_STORE_HANDOUT_STORE_H

#include "base/arena.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/tx.h"

/* Who runs an attempt: a runner, with the claim that it got it by, or a client. */
struct holder {
    const char *runner; /* NULL: a client */
    int64_t epoch;
    const char *claim_id;
    const char *client; /* NULL: a runner */
};

struct queued_trial {
    int64_t number;
    int64_t attempt;   /* the latest; 0 before the first */
    const char *shape; /* NULL: it has none */
    int64_t bytes_per_member;
    bool may_share; /* it never ran, or its latest attempt was released */
};

/* The queued trials with the lowest numbers, at most `limit`, in their order. */
AS_MUST_CHECK as_status store_handout_queue(struct tx *t, struct arena *a, int64_t sweep_key,
                                            int64_t limit, struct queued_trial **ret, size_t *ret_n,
                                            struct as_err *err);

struct begun_trial {
    int64_t number;
    const char *group; /* NULL: alone */
};

/* These queued trials run, each one attempt further. AS_E_CONFLICT: one was not queued. */
AS_MUST_CHECK as_status store_handout_begin(struct tx *t, const struct sweep_head *s,
                                            const struct holder *holder,
                                            const struct begun_trial *rows, size_t n,
                                            struct as_err *err);

/* A suggestion that becomes a trial. */
struct made_trial {
    int64_t number, seed, index;
    int64_t seen;                    /* -1: the method does not learn */
    const char *params, *suggestion; /* JSON */
    const char *shape;               /* NULL: it has none */
    int64_t bytes_per_member;
    const char *group; /* NULL: alone */
    bool runs;         /* false: it waits in the queue */
};

/* Insert them; those that run are at attempt 1. */
AS_MUST_CHECK as_status store_handout_add(struct tx *t, const struct sweep_head *s,
                                          const struct holder *holder,
                                          const struct made_trial *rows, size_t n,
                                          struct as_err *err);

/* What is known of a group: of whose sweep and shape, and how many of its members run. */
struct group_head {
    int64_t sweep_key; /* 0: no trial of this runner was last in that group */
    const char *shape;
    int64_t bytes_per_member;
    int64_t running;
};

AS_MUST_CHECK as_status store_handout_group(struct tx *t, struct arena *a, const char *group,
                                            const char *runner, struct group_head *ret,
                                            struct as_err *err);

#endif
