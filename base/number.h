/* The smaller and the larger of two numbers. */
#ifndef ASSAY_BASE_NUMBER_H
#define ASSAY_BASE_NUMBER_H

#include <stdint.h>

static inline int64_t as_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t as_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
