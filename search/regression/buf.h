/* A scratch array of doubles that begins on a 64-byte boundary, and leading dimensions that keep
 * each row there: BLAS kernels then see the same alignment wherever the memory comes from, and the
 * same numbers give the same bits. */
#ifndef ASSAY_SEARCH_REGRESSION_BUF_H
#define ASSAY_SEARCH_REGRESSION_BUF_H

#include <stddef.h>

#include "base/status.h"

struct gp_buf {
    void *base; /* what is freed */
    double *p;
    size_t cap; /* doubles at p */
};

/* Room for rows x width doubles. If it grows, its contents are lost; otherwise they stay. It grows
 * by at least a half, so that a growing n allocates rarely. AS_E_NOMEM. */
AS_MUST_CHECK as_status gp_buf_reserve(struct gp_buf *b, size_t rows, size_t width,
                                       struct as_err *err);
void gp_buf_done(struct gp_buf *b); /* accepts a zeroed one */

/* The leading dimension of rows of n doubles: an odd number of 64-byte lines, so that a column of a
 * matrix of 2^k rows does not fall into one set of the cache. */
static inline size_t gp_ld(size_t n)
{
    return ((n + 7) / 8 | 1) * 8;
}

#endif
