/* Table user_attr: values that people keep with trials and sweeps. */
#ifndef ASSAY_SCHEDULER_STORE_ATTR_STORE_H
#define ASSAY_SCHEDULER_STORE_ATTR_STORE_H

#include <stdbool.h>

#include "base/arena.h"
#include "scheduler/store/tx.h"

struct user_attr {
    const char *name;
    const char *value; /* JSON; NULL: remove it */
};

/* Number -1: those of the sweep. No name stands twice. */
AS_MUST_CHECK as_status store_attr_put(struct tx *t, int64_t sweep_key, int64_t number,
                                       const struct user_attr *attrs, size_t n, struct as_err *err);

/* How many there are, and the bytes of their names and values. */
AS_MUST_CHECK as_status store_attr_sum(struct tx *t, int64_t sweep_key, int64_t number,
                                       int64_t *ret_n, int64_t *ret_bytes, struct as_err *err);

/* A JSON object for each of the numbers; "{}": it has none. `ret`: room for n. */
AS_MUST_CHECK as_status store_attr_list(struct tx *t, struct arena *a, int64_t sweep_key,
                                        const int64_t *numbers, size_t n, const char **ret,
                                        struct as_err *err);

#endif
