#include "kernels/reference/reference.h"

#include <math.h>

static bool is_known(const struct embedding_args *a, int32_t token)
{
    return token >= 0 && (size_t)token < a->vocab;
}

as_status ref_embedding_forward(struct backend *be, const struct embedding_args *a, struct tensor y,
                                struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *table = tensor_f32(a->table, k), *positions = tensor_f32(a->positions, k);
        float *out = tensor_f32(y, k);
        for (size_t i = 0; i < a->batch * a->seq * a->width; i++) {
            size_t row = i / a->width, d = i % a->width, t = row % a->seq;
            int32_t token = tensor_i32(a->tokens, k)[row];
            double at = positions != NULL ? (double)positions[t * a->width + d] : 0;
            double value = is_known(a, token) ? (double)table[(size_t)token * a->width + d] : NAN;
            out[i] = (float)(value + at);
        }
    }
    return AS_OK;
}

/* dtable[v, d] = sum of dy over the rows whose token is v, in the order of the rows. */
static void backward_table(const struct embedding_args *a, const int32_t *tokens, const float *dy,
                           float *dtable)
{
    for (size_t v = 0; v < a->vocab; v++) {
        for (size_t d = 0; d < a->width; d++) {
            double sum = 0;
            for (size_t row = 0; row < a->batch * a->seq; row++)
                if (tokens[row] == (int32_t)v)
                    sum += (double)dy[row * a->width + d];
            dtable[v * a->width + d] = (float)sum;
        }
    }
}

static void backward_positions(const struct embedding_args *a, const float *dy, float *dpositions)
{
    for (size_t i = 0; i < a->seq * a->width; i++) {
        double sum = 0;
        for (size_t b = 0; b < a->batch; b++)
            sum += (double)dy[b * a->seq * a->width + i];
        dpositions[i] = (float)sum;
    }
}

as_status ref_embedding_backward(struct backend *be, const struct embedding_args *a,
                                 struct tensor dy, struct tensor dtable, struct tensor dpositions,
                                 struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        backward_table(a, tensor_i32(a->tokens, k), tensor_f32(dy, k), tensor_f32(dtable, k));
        if (dpositions.buf != NULL)
            backward_positions(a, tensor_f32(dy, k), tensor_f32(dpositions, k));
    }
    return AS_OK;
}
