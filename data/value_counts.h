/* How often each value of a column occurs, by 64-bit hashes of the values: memory for a value does
 * not depend on its length. Two of n values share a hash with probability n^2 / 2^65, below 1e-7
 * for a million. */
#ifndef ASSAY_DATA_VALUE_COUNTS_H
#define ASSAY_DATA_VALUE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct value_count {
    uint64_t hash; /* 0: the place is free */
    uint64_t with; /* what the caller stored beside the first of them */
    size_t n;
    bool mixed; /* the caller's: something else stood beside a later one */
};

/* A zeroed struct is empty. */
struct value_counts {
    struct value_count *places; /* [cap], cap a power of two; owned */
    size_t cap, n;              /* n values */
};

void value_counts_done(struct value_counts *v);

/* The hash of a text; never 0. */
uint64_t value_hash(const char *s, size_t len);

/* Count a value. *ret is its place until the next call; with n 1 it is new. AS_E_NOMEM. */
AS_MUST_CHECK as_status value_counts_add(struct value_counts *v, uint64_t hash,
                                         struct value_count **ret, struct as_err *err);

#endif
