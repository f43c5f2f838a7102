#include "trial-runner/train/best_record.h"

#include <stdlib.h>

#include "base/mem.h"

void best_done(struct best *b)
{
    free(b->weights);
    free(b->statistics);
    str_done(&b->line);
    *b = (struct best){0};
}

as_status best_alloc(struct best *b, size_t n_params, size_t n_state, struct as_err *err)
{
    if (b->weights)
        return AS_OK;
    b->weights = as_calloc(n_params, sizeof *b->weights);
    b->statistics = n_state > 0 ? as_calloc(n_state, sizeof *b->statistics) : NULL;
    if (b->weights && (b->statistics || n_state == 0))
        return AS_OK;
    return as_fail(err, AS_E_NOMEM, "out of memory for a copy of %zu parameters", n_params);
}
