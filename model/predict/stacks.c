/* Layers: the members of a further layer see, behind the columns of a row, what other inputs
 * predict for it. A pass goes from layer to layer. In each, the rows of a stack are made once for
 * all members that see it. */
#include <string.h>

#include "model/predict/predictor_priv.h"

as_status predictor_stacks_init(struct predictor *p, struct as_err *err)
{
    const struct model_combine *c = model_file_combine(p->file);
    p->wanted = as_calloc(c->n_inputs, sizeof *p->wanted);
    p->stacked = as_calloc(c->n_stacks, sizeof *p->stacked);
    if (!p->wanted || !p->stacked)
        return as_fail_nomem(err);
    p->n_stacks = c->n_stacks;
    for (size_t s = 0; s < c->n_stacks; s++) {
        size_t width = c->stacks[s].info->n_features;
        p->stacked[s] = as_calloc(p->max_rows * width, sizeof **p->stacked);
        if (!p->stacked[s])
            return as_fail_nomem(err);
    }
    p->seen = c->n_stacks > 0 ? as_calloc(p->max_rows * p->n_outputs, sizeof *p->seen) : NULL;
    return c->n_stacks == 0 || p->seen ? AS_OK : as_fail_nomem(err);
}

static void want(struct predictor *p, size_t input)
{
    const struct model_combine *c = model_file_combine(p->file);
    size_t s = c->stack[input];
    if (p->wanted[input])
        return;
    p->wanted[input] = true;
    for (size_t i = 0; s != MODEL_NO_STACK && i < c->stacks[s].n_of; i++)
        want(p, c->stacks[s].of[i]); /* there are no circles */
}

void predictor_want(struct predictor *p, size_t input)
{
    size_t n = model_file_combine(p->file)->n_inputs;
    for (size_t i = 0; i < n; i++)
        p->wanted[i] = input == SIZE_MAX;
    if (input != SIZE_MAX)
        want(p, input);
}

/* Put what input `of` predicts in place i behind each row. */
static void put(struct predictor *p, size_t s, size_t i, size_t of, size_t rows)
{
    const struct model_combine *c = model_file_combine(p->file);
    size_t n = model_stacked_width(p->info), width = c->stacks[s].info->n_features;
    predictor_combine_input(p, of, rows, p->seen);
    for (size_t r = 0; r < rows; r++)
        model_stacked_values(p->info, p->seen + r * p->n_outputs,
                             p->stacked[s] + r * width + p->info->n_features + i * n);
}

static bool is_due(const struct predictor *p, size_t s, size_t depth)
{
    const struct model_combine *c = model_file_combine(p->file);
    for (size_t i = 0; i < c->n_inputs; i++)
        if (p->wanted[i] && c->stack[i] == s && c->depth[i] == depth)
            return true;
    return false;
}

void predictor_stack_rows(struct predictor *p, size_t depth, const float *raw, size_t rows)
{
    const struct model_combine *c = model_file_combine(p->file);
    for (size_t s = 0; s < c->n_stacks; s++) {
        const struct model_stack *k = &c->stacks[s];
        if (!is_due(p, s, depth))
            continue;
        for (size_t r = 0; r < rows; r++)
            memcpy(p->stacked[s] + r * k->info->n_features, raw + r * p->info->n_features,
                   p->info->n_features * sizeof *raw);
        for (size_t i = 0; i < k->n_of; i++)
            put(p, s, i, k->of[i], rows);
    }
}
