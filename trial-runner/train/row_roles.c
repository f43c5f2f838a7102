#include "trial-runner/train/row_roles.h"

#include <stdlib.h>

#include "data/dataset_view.h"
#include "data/preprocess/holdout.h"
#include "model/plan/net_data.h"
#include "model/prepare/prepare_rule.h"

void row_roles_done(struct row_roles *r)
{
    dataset_info_done(&r->info);
    free(r->part);
    free(r->weights);
    *r = (struct row_roles){0};
}

static as_status read_weights(const struct job *job, const struct train_spec *spec, size_t n_rows,
                              float **ret, struct as_err *err)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    const struct dataset_paths paths = job_paths(job);
    as_status st = dataset_read_cells(&paths, &job->info, spec->weights, &cells, err);
    if (st != AS_OK)
        return st;
    *ret = as_calloc(n_rows, sizeof **ret);
    if (!*ret)
        return as_fail_nomem(err);
    return holdout_weights(&cells, spec->weights, *ret, err);
}

as_status row_roles_read(const struct job *job, const struct train_spec *spec, struct dataset *set,
                         struct row_roles *ret, struct as_err *err)
{
    AS_AUTO(row_roles_done) struct row_roles r = {0};
    const struct dataset_paths paths = job_paths(job);
    size_t columns[SPEC_MAX_COLUMNS], n = spec_columns(&job->info, spec, columns);
    as_status st = dataset_info_without(&job->info, columns, n, &r.info, err);
    if (st == AS_OK && spec->folds > 0)
        st = prepare_rule_fold(spec, set, job->fold, &r.part, err);
    else if (st == AS_OK)
        st = prepare_rule_part(spec, &paths, &job->info, &r.part, err);
    if (st == AS_OK && spec->weights)
        st = read_weights(job, spec, set->n_rows, &r.weights, err);
    if (st != AS_OK)
        return st;
    dataset_without(set, &job->info, columns, n);
    *ret = r;
    r = (struct row_roles){0};
    return AS_OK;
}
