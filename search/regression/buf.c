#include "search/regression/buf.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

as_status gp_buf_reserve(struct gp_buf *b, size_t rows, size_t width, struct as_err *err)
{
    size_t want;
    if (__builtin_mul_overflow(rows, width, &want) || want > SIZE_MAX / 32)
        return as_fail(err, AS_E_NOMEM, "%zu rows of %zu numbers do not fit in memory", rows,
                       width);
    if (want <= b->cap && b->base)
        return AS_OK;
    if (want < b->cap + b->cap / 2)
        want = b->cap + b->cap / 2;
    void *base = as_calloc(want + 8, sizeof(double));
    if (!base)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu numbers", want);
    free(b->base);
    b->base = base;
    b->p = (double *)(((uintptr_t)base + 63) & ~(uintptr_t)63);
    b->cap = want;
    return AS_OK;
}

void gp_buf_done(struct gp_buf *b)
{
    free(b->base);
    *b = (struct gp_buf){0};
}
