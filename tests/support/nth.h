/* The nth failure: an operation is run again and again, each time with another allocation that
 * fails, until none of its allocations is left.
 *
 * Every allocation through base/mem.h counts, and every one of jansson after json_fail_with_mem().
 * A run that met its failure must return AS_E_NOMEM, or AS_OK with the same result as a run without
 * a failure (a cache may do without memory). It must leave nothing allocated: in builds without a
 * sanitizer the blocks of the program are counted, and LeakSanitizer counts them in the others. */
#ifndef ASSAY_TESTS_SUPPORT_NTH_H
#define ASSAY_TESTS_SUPPORT_NTH_H

#include <jansson.h>

#include "base/status.h"
#include "base/str.h"

/* One run. Appends its result to *out, as text. What it allocates, it frees. */
typedef as_status nth_fn(const void *arg, struct str *out, struct as_err *err);

/* Run fn until no allocation is left to fail, at most `max` times (0: no limit). Returns how many
 * allocations failed. Fails the test with the number of the allocation that shows a fault. */
size_t nth_each(const char *name, nth_fn *fn, const void *arg, size_t max);

/* The value of an expression of type json_t *, a new reference, which is NULL when memory is out:
 * each of its allocations has failed before. */
#define nth_json(call)                                                                             \
    __extension__({                                                                                \
        json_t *nth_want_ = (call);                                                                \
        for (size_t nth_n_ = nth_want_ ? 1 : 0; nth_n_ > 0; nth_n_++) {                            \
            long nth_before_ = nth_live_blocks();                                                  \
            (void)as_mem_fail_nth(nth_n_);                                                         \
            json_t *nth_got_ = (call);                                                             \
            size_t nth_left_ = as_mem_fail_nth(0);                                                 \
            nth_check_json(nth_n_, nth_left_, nth_want_, nth_got_, nth_before_);                   \
            if (nth_left_ > 0)                                                                     \
                break;                                                                             \
        }                                                                                          \
        nth_want_;                                                                                 \
    })

/* private to nth_json() */
long nth_live_blocks(void); /* 0 in builds with a sanitizer */
void nth_check_json(size_t n, size_t left, const json_t *want, json_t *got, long before);

#endif
