#include "model/trees/bayes_shape.h"

#include "base/mem.h"
#include "model/trees/tree_inputs.h"

static uint32_t kind_of(const struct dataset_column *c)
{
    if (c->categorical) /* its values, and the others together */
        return (uint32_t)c->n_values + 1;
    return c->part == DATASET_HASHED ? BAYES_WORDS : BAYES_NUMBER;
}

as_status bayes_shape_of(const struct dataset_info *info, struct bayes_shape *ret,
                         uint32_t **ret_kinds, struct as_err *err)
{
    size_t n = tree_inputs_count(info), at = 0;
    AS_AUTO(as_freep) uint32_t *kinds = as_calloc(n + 1, sizeof *kinds);
    if (!kinds)
        return as_fail_nomem(err);
    bool described = info->input == DATASET_TABLE && info->columns; /* else all are numbers */
    for (int categorical = 0; described && categorical < 2; categorical++)
        for (size_t c = 0; c < info->n_features; c++)
            if (info->columns[c].categorical == (categorical == 1))
                kinds[at++] = kind_of(&info->columns[c]);
    *ret = (struct bayes_shape){.inputs = n, .classes = info->n_outputs, .kinds = kinds};
    *ret_kinds = as_steal(kinds);
    return AS_OK;
}
