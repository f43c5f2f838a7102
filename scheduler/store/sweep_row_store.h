/* What the API shows of sweeps. Strings that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_SWEEP_ROW_STORE_H
#define ASSAY_SCHEDULER_STORE_SWEEP_ROW_STORE_H

#include "base/arena.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/store/tx.h"

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_sweep_get(struct tx *t, struct arena *a, int64_t key,
                                        struct sweep_row *ret, struct as_err *err);

struct sweep_list_query {
    const char *state;   /* NULL: any */
    const char *tag;     /* NULL: any */
    const char *dataset; /* NULL: any */
    int64_t before;      /* only keys below this; 0: all */
    int64_t size;        /* at most so many; fewer when they pass PAGE_BYTES_MAX */
    bool with_documents;
};

/* Newest first; *ret_next is 0 on the last page. */
AS_MUST_CHECK as_status store_sweep_list(struct tx *t, struct arena *a,
                                         const struct sweep_list_query *q, struct sweep_row **ret,
                                         size_t *ret_n, int64_t *ret_next, struct as_err *err);

#endif
