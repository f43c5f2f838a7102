/* trial.train and the description of a data set: what is accepted is within its stated bounds. */
#include <stdlib.h>

#include "base/json.h"
#include "model/plan/plan_check.h"
#include "model/plan/pad.h"
#include "model/plan/plan.h"
#include "model/plan/signature.h"
#include "model/document/train_spec.h"
#include "data/dataset_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_blocks(const struct train_model_spec *m)
{
    if (m->n_blocks > TRAIN_MAX_BLOCKS)
        abort();
    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct train_block *b = &m->blocks[i];
        bool window = b->kind <= BLOCK_POOL_AVG;
        if (i + b->inner >= m->n_blocks + (b->inner == 0) || b->out < 0 || b->padding < -1 ||
            (window && (b->kernel < 1 || b->stride < 1)))
            abort();
    }
}

/* What holds of every plan: values are read after they were made, offsets follow one another, and
 * every parameter's gradient is reached. */
static void check_plan(const struct net_plan *p)
{
    size_t at = 0;
    for (size_t i = 0; i < p->n_tensors; i++) {
        if (p->tensors[i].offset != at || p->tensors[i].count == 0)
            abort();
        at += p->tensors[i].count;
    }
    if (at != p->n_params || at > TRAIN_MAX_PARAMETERS || p->n_nodes < 2)
        abort();
    for (size_t i = 1; i < p->n_nodes; i++) {
        const struct net_node *n = &p->nodes[i];
        if (n->from >= i || (n->with != NET_NONE && n->with >= i) ||
            net_shape_elements(n->out) == 0 || n->grad.sum >= (int)p->n_slots)
            abort();
    }
}

static void plan(const struct train_spec *spec, const struct net_data *data)
{
    struct as_err err;
    AS_AUTO(net_plan_freep) struct net_plan *p = NULL;
    AS_AUTO(net_plan_freep) struct net_plan *widest = NULL;
    AS_AUTO(str_done) struct str signature = {0};
    if (net_plan_create(spec, data, "", &p, &err) < 0)
        return;
    check_plan(p);
    if (net_plan_widest(p, &widest, &err) < 0 || !net_plan_fits(p, widest))
        abort();
    net_signature(spec, data, &signature);
    if (signature.len == 0)
        abort();
}

static void plans(const struct train_spec *spec)
{
    const struct net_data table = {.task = DATASET_CLASSIFICATION,
                                   .rows = 1000,
                                   .numeric = 7,
                                   .n_categories = 2,
                                   .category_slots = 9,
                                   .outputs = 3};
    const struct net_data images = {.kind = NET_IMAGES,
                                    .task = DATASET_CLASSIFICATION,
                                    .height = 12,
                                    .width = 10,
                                    .channels = 3,
                                    .outputs = 10};
    const struct net_data tokens = {
        .kind = NET_TOKENS, .task = DATASET_LANGUAGE_MODELING, .vocab = 60, .outputs = 60};
    plan(spec, &table);
    plan(spec, &images);
    plan(spec, &tokens);
}

static void check_distributed(const struct train_spec *s)
{
    const struct distributed_spec *d = &s->distributed;
    struct as_err err;
    if ((d->strategy == DISTRIBUTED_LOCAL_SGD && d->local_steps < 1) || !(d->fraction > 0) ||
        d->rank < 1 || d->staleness < 0 || d->peers < 1 || d->state_copies < 1 ||
        !(d->outer.lr > 0) || !(d->outer.momentum >= 0 && d->outer.momentum < 1) ||
        (d->error_feedback && d->codec == DISTRIBUTED_PLAIN) ||
        (d->shard_state && d->strategy != DISTRIBUTED_ALLREDUCE))
        abort();
    if (distributed_check_ranks(s, s->batch_size / s->micro_batch + 1, "/ranks", "", &err) == AS_OK)
        abort();
}

static void check_trees(const struct train_model_spec *m)
{
    const struct train_trees_spec *t = &m->trees;
    if (t->n_estimators < 1 || t->max_depth < 0 || t->max_leaves < 0 || t->max_bin < 2 ||
        t->early_stopping_rounds < 0 || !(t->learning_rate > 0 && t->learning_rate <= 1) ||
        !(t->min_child_weight >= 0) || !(t->reg_lambda >= 0) || !(t->subsample > 0) ||
        !(t->colsample_bytree > 0) || !(t->colsample_bylevel > 0) || !(t->colsample_bynode >= 0))
        abort();
}

static void check_spec(const struct train_spec *s)
{
    check_distributed(s);
    if (train_model_is_trees(&s->model))
        check_trees(&s->model);
    if (s->epochs < 1 || s->batch_size < 1 || s->report_every < 1 || !s->dataset[0])
        abort();
    if (s->model.n_layers > TRAIN_MAX_LAYERS || !(s->optimizer.lr > 0) ||
        !(s->model.dropout >= 0 && s->model.dropout < 1))
        abort();
    for (size_t i = 0; i < s->model.n_layers; i++)
        if (s->model.layers[i] < 1 || s->model.layers[i] > TRAIN_MAX_WIDTH)
            abort();
    check_blocks(&s->model);
    if (s->micro_batch < 1 || s->batch_size % s->micro_batch != 0 ||
        s->n_metrics > TRAIN_MAX_EXTRA_METRICS || (s->n_class_weights > 0 && !s->class_weights))
        abort();
    size_t held = train_spec_validation_rows(s, 10);
    if (held < 1 || held > 9)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_err err;
    struct train_spec spec;
    struct dataset_info info;
    JSON_AUTO doc = NULL;
    if (json_parse((const char *)data, size, &doc, &err) < 0)
        return 0;
    if (train_spec_parse(doc, "", &spec, &err) == AS_OK) {
        check_spec(&spec);
        if (train_model_is_network(&spec.model))
            plans(&spec);
        train_spec_done(&spec);
    }
    if (dataset_info_from_json(doc, "", &info, &err) == AS_OK) {
        JSON_AUTO back = dataset_info_to_json(&info);
        if (!back)
            abort();
        if (train_spec_check(&(struct train_spec){0}, &info, "", &err) == AS_OK && info.n_rows < 2)
            abort();
        dataset_info_done(&info);
    }
    return 0;
}
