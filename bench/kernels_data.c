#include "bench/kernels_data.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

void must(as_status st, const struct as_err *err)
{
    if (st == AS_OK)
        return;
    fprintf(stderr, "kernels: %s\n", err->msg);
    exit(EXIT_FAILURE);
}

float *host_floats(size_t n)
{
    struct as_err err;
    float *data = as_calloc(n + 1, sizeof(*data));
    if (data == NULL)
        must(as_fail(&err, AS_E_NOMEM, "out of memory"), &err);
    struct rng r;
    rng_init(&r, 1, n);
    for (size_t i = 0; i < n; i++)
        data[i] = (float)rng_uniform(&r) - 0.5f;
    return data;
}

struct tensor floats(struct backend *be, size_t members, size_t n)
{
    struct as_err err;
    struct buf *b = NULL;
    must(buf_create(be, BUF_F32, members * n, &b, &err), &err);
    AS_AUTO(as_freep) float *data = host_floats(n);
    must(buf_upload(b, 0, data, n, &err), &err);
    for (size_t k = 1; k < members && n > 0; k++)
        must(buf_copy(b, k * n, b, 0, n, &err), &err);
    return tensor_at(b, 0, n);
}
