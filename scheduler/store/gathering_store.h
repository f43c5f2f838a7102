/* Tables gathering and gathering_seat: the one gang that gathers, and the slots that are kept free
 * for it. A transaction locks the runner's row before `gathering`, and `gathering` before
 * sweeps. */
#ifndef ASSAY_SCHEDULER_STORE_GATHERING_STORE_H
#define ASSAY_SCHEDULER_STORE_GATHERING_STORE_H

#include "base/arena.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/tx.h"

struct gathering {
    int64_t sweep_key;   /* 0: none gathers */
    bool has_work;       /* the sweep may begin another trial now */
    int64_t ranks;       /* of its next trial; 0: each has its own, and none is made yet */
    int64_t least_ranks; /* with so many it begins, if no others come */
    bool has_run;        /* that trial had an attempt before */
    int64_t gpus;        /* of each rank, as the next two */
    int64_t cpus, memory_bytes;
    int64_t seats;         /* taken so far */
    int64_t could_hold;    /* ranks that the live runners could hold if nothing else ran */
    int64_t idle_ms;       /* none gathers for so long */
    int64_t unprogress_ms; /* since a seat was taken */
};

/* Hold the row until the transaction ends, without seats that have lapsed. */
AS_MUST_CHECK as_status store_gathering_lock(struct tx *t, struct gathering *ret,
                                             struct as_err *err);
/* The same without a lock; lapsed seats count. */
AS_MUST_CHECK as_status store_gathering_get(struct tx *t, struct gathering *ret,
                                            struct as_err *err);
/* Let a sweep gather; 0: none does. No slot is kept then. The caller holds the row. */
AS_MUST_CHECK as_status store_gathering_set(struct tx *t, int64_t sweep_key, struct as_err *err);
/* Keep n slots of a runner. The caller holds the row. */
AS_MUST_CHECK as_status store_gathering_reserve(struct tx *t, const struct runner_id *id, int64_t n,
                                                int64_t until_ms, struct as_err *err);
/* The runner's slots that are kept last for `until_ms` from now on; *ret_n: how many they are. */
AS_MUST_CHECK as_status store_gathering_extend(struct tx *t, const struct runner_id *id,
                                               int64_t until_ms, int64_t *ret_n,
                                               struct as_err *err);
/* Give up at most n slots of a runner, the latest first. *ret_n: how many it gave up. */
AS_MUST_CHECK as_status store_gathering_give_up(struct tx *t, const char *runner, int64_t n,
                                                int64_t *ret_n, struct as_err *err);
/* Remember whether the runner takes ranks; a statement that changes nothing writes nothing. */
AS_MUST_CHECK as_status store_gathering_takes(struct tx *t, const struct runner_id *id, bool takes,
                                              struct as_err *err);

/* What a claim looks at. */
struct gathering_news {
    bool takes_seats; /* the runner's latest claim offered seats */
    bool has_seats;   /* the runner has ranks that it does not know of */
    bool has_gangs;   /* there are running gangs that may have lost ranks */
    bool gathers;     /* a gang gathers */
    int64_t idle_ms;  /* none gathers for so long */
};
AS_MUST_CHECK as_status store_gathering_news(struct tx *t, const struct runner_id *id,
                                             struct gathering_news *ret, struct as_err *err);

/* What waiting claims may get of gangs: how many of them to try again; INT64_MAX: all. */
AS_MUST_CHECK as_status store_gathering_pending(struct tx *t, int64_t *ret, struct as_err *err);

#endif
