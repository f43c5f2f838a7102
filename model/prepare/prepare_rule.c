#include "model/prepare/prepare_rule.h"

#include "base/mem.h"
#include "data/dataset_view.h"
#include "data/preprocess/holdout.h"

struct preprocess_opts prepare_rule_opts(const struct train_spec *spec, dataset_task task,
                                         size_t n_rows)
{
    bool trees = train_model_sees_cells(&spec->model); /* model/trees/tree_inputs.h */
    bool network = train_model_is_network(&spec->model);
    return (struct preprocess_opts){.split_seed = (uint64_t)spec->validation_seed,
                                    .stratify = spec->validation_split == TRAIN_SPLIT_STRATIFIED,
                                    .n_validation = train_spec_validation_rows(spec, n_rows),
                                    .context = (size_t)spec->model.context,
                                    .standardize = spec->standardize && !trees,
                                    .embed_categories =
                                        trees || (network && spec->model.embedding > 0),
                                    .bins = train_spec_bins(spec),
                                    .target_transform = spec->target_transform,
                                    .targets_as_shares = train_spec_loss(spec, task) == TRAIN_BCE};
}

static as_status part_of_cells(const struct train_spec *spec, const struct dataset_cells *cells,
                               unsigned char *ret, struct as_err *err)
{
    const char *name = spec->holdout_column;
    size_t held = train_spec_validation_rows(spec, cells->n);
    switch (spec->holdout) {
    case TRAIN_HOLD_ORDER:
        return holdout_by_order(cells, name, held, ret, err);
    case TRAIN_HOLD_GROUPS:
        return holdout_by_groups(cells, name, held, (uint64_t)spec->validation_seed, ret, err);
    default:
        return holdout_by_words(cells, name, ret, err);
    }
}

as_status prepare_rule_part(const struct train_spec *spec, const struct dataset_paths *paths,
                            const struct dataset_info *info, unsigned char **ret,
                            struct as_err *err)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    AS_AUTO(as_freep) unsigned char *part = NULL;
    if (spec->holdout_column) {
        as_status st = dataset_read_cells(paths, info, spec->holdout_column, &cells, err);
        if (st != AS_OK)
            return st;
        part = as_calloc(cells.n, 1);
        if (!part)
            return as_fail_nomem(err);
        st = part_of_cells(spec, &cells, part, err);
        if (st != AS_OK)
            return st;
    }
    *ret = as_steal(part);
    return AS_OK;
}

as_status prepare_rule_fold(const struct train_spec *spec, const struct dataset *set, size_t fold,
                            unsigned char **ret, struct as_err *err)
{
    const int32_t *labels = spec->validation_split == TRAIN_SPLIT_STRATIFIED ? set->labels : NULL;
    AS_AUTO(as_freep) unsigned char *part = as_calloc(set->n_rows, 1);
    if (!part)
        return as_fail_nomem(err);
    size_t folds = (size_t)spec->folds;
    as_status st =
        holdout_by_fold(labels, set->n_rows, set->n_outputs, folds, fold < folds ? fold : 0,
                        (uint64_t)spec->validation_seed, part, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; fold == folds && i < set->n_rows; i++)
        part[i] = part[i] == HOLDOUT_HELD ? HOLDOUT_BOTH : part[i];
    *ret = as_steal(part);
    return AS_OK;
}
