#include "trial-runner/train/stage_targets.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "model/file/model_file.h"

as_status stage_targets_put(const struct stage_targets *t, struct row_roles *roles,
                            struct dataset *set, struct as_err *err)
{
    struct dataset_info residual;
    size_t n = set->n_rows * set->n_outputs;
    as_status st = model_residual_info(&roles->info, &residual, err);
    if (st != AS_OK)
        return st;
    dataset_info_done(&roles->info);
    roles->info = residual;
    free(set->labels);
    set->labels = NULL;
    if (!set->targets)
        set->targets = as_calloc(n, sizeof *set->targets);
    if (!roles->part)
        roles->part = as_calloc(set->n_rows, 1);
    if (!set->targets || !roles->part)
        return as_fail_nomem(err);
    memcpy(set->targets, t->values, n * sizeof *set->targets);
    memcpy(roles->part, t->part, set->n_rows);
    return AS_OK;
}
