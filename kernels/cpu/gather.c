#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* Rows are moved as 32-bit words, whatever their kind; `missing` fills a row with a bad index or
 * a place outside it. */
static void gather_rows(const struct gather_args *a, size_t k, uint32_t missing)
{
    const uint32_t *src = (const uint32_t *)tensor_i32(a->src, k);
    const int32_t *index = tensor_i32(a->index, k);
    int64_t at = 0, len = (int64_t)a->batch;
    if (a->at.buf != NULL) {
        at = (int64_t)*tensor_i32(a->at, k) * (int64_t)a->at_rows;
        len = (int64_t)a->index_len;
    }
    for (size_t r = 0; r < a->batch; r++, at++) {
        uint32_t *to = (uint32_t *)tensor_i32(a->dst, k) + r * a->width;
        int32_t from = at >= 0 && at < len ? index[at] : -1;
        if (from >= 0 && (size_t)from < a->rows) {
            memcpy(to, src + (size_t)from * a->width, a->width * sizeof(*to));
            continue;
        }
        for (size_t d = 0; d < a->width; d++)
            to[d] = missing;
    }
}

as_status cpu_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    const float not_a_number = NAN;
    uint32_t missing = UINT32_MAX; /* -1 */
    if (a->src.buf->kind == BUF_F32)
        memcpy(&missing, &not_a_number, sizeof(missing));
    for (size_t k = 0; k < a->members; k++)
        gather_rows(a, k, missing);
    return AS_OK;
}

as_status cpu_columns(struct backend *be, const struct columns_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t r = 0; r < a->rows; r++)
            memcpy(tensor_f32(a->dst, k) + r * a->dst_width + a->dst_at,
                   tensor_f32(a->src, k) + r * a->src_width + a->src_at, a->width * sizeof(float));
    return AS_OK;
}
