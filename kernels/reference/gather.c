#include "kernels/reference/reference.h"

#include <math.h>

/* The row of src that row r of the batch is; -1 when there is none. */
static int32_t source_of(const struct gather_args *a, size_t k, size_t r)
{
    int64_t at = (int64_t)r, len = (int64_t)a->batch;
    if (a->at.buf != NULL) {
        at += (int64_t)*tensor_i32(a->at, k) * (int64_t)a->at_rows;
        len = (int64_t)a->index_len;
    }
    return at >= 0 && at < len ? tensor_i32(a->index, k)[at] : -1;
}

static void gather_row(const struct gather_args *a, size_t k, size_t r)
{
    int32_t from = source_of(a, k, r);
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
