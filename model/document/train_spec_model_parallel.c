/* `model_parallel` of `trial.train.distributed`: which layers of the network are one block, and
 * what does not go with blocks. Whether the layers are the model's is checked when it is planned
 * (model/plan/plan_blocks.h). */
#include <inttypes.h>
#include <stdio.h>

#include "model/document/train_spec_priv.h"

#define SECTION "model_parallel"

static as_status wrong(const char *at, const json_t *found, const char *expected,
                       struct as_err *err)
{
    AS_AUTO(as_freep) char *text = json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT);
    return as_fail_at(err, AS_E_INVAL, at, "%s: found %.60s, expected %s", at, text ? text : "?",
                      expected);
}

static as_status check_block(const json_t *block, const char *at, struct as_err *err)
{
    char item[AS_ERR_POINTER_MAX];
    size_t n = json_array_size(block);
    if (!json_is_array(block) || n == 0 || n > DISTRIBUTED_MAX_BLOCKS)
        return wrong(at, block, "a list of layers, such as [layers.0, layers.1]", err);
    for (size_t i = 0; i < n; i++) {
        const json_t *name = json_array_get(block, i);
        json_pointer_index(at, i, item);
        if (!json_is_string(name) || json_string_length(name) == 0)
            return wrong(item, name, "the name of a layer", err);
    }
    return AS_OK;
}

as_status train_spec_parse_model_parallel(struct json_fields *f, struct distributed_spec *d,
                                          struct as_err *err)
{
    json_t *list = NULL;
    char at[AS_ERR_POINTER_MAX], block[AS_ERR_POINTER_MAX];
    as_status st = json_fields_any(f, SECTION, JSON_OPTIONAL, &list, err);
    if (st != AS_OK || !list || as_streq(json_string_value(list), "auto"))
        return st;
    size_t n = json_array_size(list);
    json_pointer_child(f->pointer, SECTION, at);
    if (!json_is_array(list) || n < 2 || n > DISTRIBUTED_MAX_BLOCKS)
        return wrong(at, list, "auto, or a list of 2 or more blocks, each a list of layers", err);
    for (size_t i = 0; i < n; i++) {
        json_pointer_index(at, i, block);
        if ((st = check_block(json_array_get(list, i), block, err)) != AS_OK)
            return st;
    }
    d->blocks = json_deep_copy(list);
    return d->blocks ? AS_OK : as_fail_nomem(err);
}

as_status train_spec_check_model_parallel(const struct json_fields *doc, const struct train_spec *s,
                                          struct as_err *err)
{
    const struct distributed_spec *d = &s->distributed;
    const struct train_clash list[] = {
        {train_model_is_trees(&s->model), "a model of trees", "it has no layers"},
        {train_spec_is_cocoa(s), "the solver cocoa", "it has one layer"},
        {train_spec_is_lbfgs(s), "the optimizer lbfgs", "its vectors are divided in another way"},
        {s->optimizer.kind == TRAIN_LAMB, "the optimizer lamb",
         "copies of a block are updated without the norms of its tensors"},
        {s->optimizer.ema > 0, "optimizer.ema", "a block has no average of its weights"},
        {s->privacy.given, "privacy", "rows are clipped by their whole gradient"},
        {s->precision == TRAIN_BFLOAT16, "precision bfloat16", "what blocks send is float32"},
        {s->folds > 0, "validation.folds", "expected a trial of one fit"},
        {s->boost.given, "boost", "expected a trial that is no stage"},
        {s->patience > 0, "patience", "expected none"},
        {train_spec_snapshots(s) > 0, "schedule.snapshots", "expected none"},
        {d->codec != DISTRIBUTED_PLAIN, "distributed.compress", "no gradients are summed"},
        {d->sum != DISTRIBUTED_TREE, "distributed.allreduce", "no gradients are summed"},
        {d->factors != DISTRIBUTED_FACTORS_NEVER, "distributed.sufficient_factors",
         "no gradients are summed"},
        {d->shard_state, "distributed.shard_state", "each rank has its blocks' moments alone"},
    };
    char at[AS_ERR_POINTER_MAX];
    if (d->strategy != DISTRIBUTED_MODEL_PARALLEL)
        return AS_OK;
    json_pointer_child(doc->pointer, "distributed", at);
    json_pointer_child(at, SECTION, at);
    return train_spec_refuse_clash(list, AS_ARRAY_LEN(list), at, d->blocks ? "blocks" : "auto",
                                   err);
}

as_status train_spec_check_block_ranks(const struct train_spec *spec, int64_t ranks,
                                       const char *at_ranks, struct as_err *err)
{
    const json_t *blocks = spec->distributed.blocks;
    int64_t n = (int64_t)json_array_size(blocks);
    if (!blocks || ranks <= n)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, at_ranks,
                      "%s: found %" PRId64 ", expected at most the %" PRId64
                      " blocks of distributed.model_parallel",
                      at_ranks, ranks, n);
}
