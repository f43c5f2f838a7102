#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cpu_clones.h"
#include "kernels/cpu/cpu.h"

/* One member; positions is NULL if the model has none. */
struct lookup {
    const int32_t *tokens;
    const float *table, *positions;
    size_t rows, seq, vocab, width;
};

CPU_INLINE bool is_known(const struct lookup *m, int32_t token)
{
    return token >= 0 && (size_t)token < m->vocab;
}

CPU_CLONES static void forward_member(const struct lookup *m, float *restrict y)
{
    for (size_t row = 0; row < m->rows; row++) {
        float *to = y + row * m->width;
        if (!is_known(m, m->tokens[row])) {
            for (size_t d = 0; d < m->width; d++)
                to[d] = NAN;
            continue;
        }
        const float *from = m->table + (size_t)m->tokens[row] * m->width;
        if (m->positions == NULL) {
            memcpy(to, from, m->width * sizeof(*to));
            continue;
        }
        const float *at = m->positions + row % m->seq * m->width;
        for (size_t d = 0; d < m->width; d++)
            to[d] = from[d] + at[d];
    }
}

as_status cpu_embedding_forward(struct backend *be, const struct embedding_args *a, struct tensor y,
                                struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        struct lookup m = {tensor_i32(a->tokens, k),
                           tensor_f32(a->table, k),
                           tensor_f32(a->positions, k),
                           a->batch * a->seq,
                           a->seq,
                           a->vocab,
                           a->width};
        forward_member(&m, tensor_f32(y, k));
    }
    return AS_OK;
}

CPU_INLINE void add_row(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t d = 0; d < n; d++)
        to[d] += from[d];
}

/* In the order of the rows, so that the bits are always the same. */
CPU_CLONES static void backward_member(const struct lookup *m, const float *dy, float *dtable,
                                       float *dpositions)
{
    assert(m->tokens != NULL); /* ops_seq.c has checked it */
    memset(dtable, 0, m->vocab * m->width * sizeof(*dtable));
    if (dpositions != NULL)
        memset(dpositions, 0, m->seq * m->width * sizeof(*dpositions));
    for (size_t row = 0; row < m->rows; row++) {
        const float *from = dy + row * m->width;
        if (is_known(m, m->tokens[row]))
            add_row(dtable + (size_t)m->tokens[row] * m->width, from, m->width);
        if (dpositions != NULL)
            add_row(dpositions + row % m->seq * m->width, from, m->width);
    }
}

as_status cpu_embedding_backward(struct backend *be, const struct embedding_args *a,
                                 struct tensor dy, struct tensor dtable, struct tensor dpositions,
                                 struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        struct lookup m = {.tokens = tensor_i32(a->tokens, k),
                           .rows = a->batch * a->seq,
                           .seq = a->seq,
                           .vocab = a->vocab,
                           .width = a->width};
        backward_member(&m, tensor_f32(dy, k), tensor_f32(dtable, k), tensor_f32(dpositions, k));
    }
    return AS_OK;
}
