#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* Rows are moved as 32-bit words, whatever their kind; `missing` fills a row with a bad index. */
static void gather_rows(uint32_t *dst, const uint32_t *src, const int32_t *index,
                        const struct gather_args *a, uint32_t missing)
{
    for (size_t r = 0; r < a->batch; r++) {
        uint32_t *to = dst + r * a->width;
        if (index[r] >= 0 && (size_t)index[r] < a->rows) {
            memcpy(to, src + (size_t)index[r] * a->width, a->width * sizeof(*to));
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
        gather_rows((uint32_t *)tensor_i32(a->dst, k), (const uint32_t *)tensor_i32(a->src, k),
                    tensor_i32(a->index, k), a, missing);
    return AS_OK;
}
