#include "kernels/reference/reference.h"

#include <math.h>

/* The index of a batch. */
struct places {
    struct tensor index, at;
    size_t batch, at_rows, index_len;
};

/* The row of src that becomes row r of the batch; -1 when there is none. */
static int32_t source_of(const struct places *p, size_t k, size_t r)
{
    int64_t at = (int64_t)r, len = (int64_t)p->batch;
    if (p->at.buf != NULL) {
        at += (int64_t)*tensor_i32(p->at, k) * (int64_t)p->at_rows;
        len = (int64_t)p->index_len;
    }
    return at >= 0 && at < len ? tensor_i32(p->index, k)[at] : -1;
}

static void gather_row(const struct gather_args *a, size_t k, size_t r)
{
    const struct places p = {a->index, a->at, a->batch, a->at_rows, a->index_len};
    int32_t from = source_of(&p, k, r);
    bool inside = from >= 0 && (size_t)from < a->rows;
    for (size_t d = 0; d < a->width; d++) {
        size_t to_at = r * a->width + d;                           /* [B, D] */
        size_t from_at = inside ? (size_t)from * a->width + d : 0; /* [rows, D] */
        if (a->src.buf->kind == BUF_F32)
            tensor_f32(a->dst, k)[to_at] = inside ? tensor_f32(a->src, k)[from_at] : NAN;
        else
            tensor_i32(a->dst, k)[to_at] = inside ? tensor_i32(a->src, k)[from_at] : -1;
    }
}

as_status ref_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t r = 0; r < a->batch; r++)
            gather_row(a, k, r);
    return AS_OK;
}

static void gather_bytes_row(const struct gather_bytes_args *a, size_t k, size_t r)
{
    const struct places p = {a->index, a->at, a->batch, a->at_rows, a->index_len};
    int32_t from = source_of(&p, k, r);
    bool inside = from >= 0 && (size_t)from < a->rows;
    const unsigned char *src = (const unsigned char *)tensor_i32(a->src, k);
    for (size_t d = 0; d < a->width; d++) {
        float raw = inside ? (float)src[(size_t)from * a->width + d] : NAN; /* [rows, D] */
        tensor_f32(a->dst, k)[r * a->width + d] =
            (raw - tensor_f32(a->mean, k)[d]) / tensor_f32(a->scale, k)[d];
    }
}

as_status ref_gather_bytes(struct backend *be, const struct gather_bytes_args *a,
                           struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t r = 0; r < a->batch; r++)
            gather_bytes_row(a, k, r);
    return AS_OK;
}

as_status ref_columns(struct backend *be, const struct columns_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t r = 0; r < a->rows; r++)
            for (size_t c = 0; c < a->width; c++)
                tensor_f32(a->dst, k)[r * a->dst_width + a->dst_at + c] =
                    tensor_f32(a->src, k)[r * a->src_width + a->src_at + c];
    return AS_OK;
}
