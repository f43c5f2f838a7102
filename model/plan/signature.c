/* The shape signature: a line of text with exactly the settings in which members that train
 * together must agree. */
#include "model/plan/signature.h"

#include <inttypes.h>

#include "model/plan/pad.h"

static void add_mlp(const struct train_model_spec *m, struct str *out)
{
    str_printf(out, "mlp %s%s%s", m->batch_norm ? "norm " : "", m->dropping ? "dropout " : "",
               m->batch_norm ? "exactly" : "up to");
    for (size_t i = 0; i < m->n_layers; i++) {
        size_t width = (size_t)m->layers[i];
        str_printf(out, " %zu", m->batch_norm ? width : net_width_bucket(width));
    }
}

static void add_cnn(const struct train_model_spec *m, struct str *out)
{
    static const char *const words[] = {
        [BLOCK_CONV] = "conv",          [BLOCK_POOL_MAX] = "max",      [BLOCK_POOL_AVG] = "avg",
        [BLOCK_POOL_GLOBAL] = "global", [BLOCK_RESIDUAL] = "residual", [BLOCK_DENSE] = "dense",
        [BLOCK_DROPOUT] = "dropout"};
    str_printf(out, "cnn%s", m->dropping ? " dropout" : "");
    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct train_block *b = &m->blocks[i];
        if (b->kind == BLOCK_DROPOUT && !m->dropping)
            continue;
        str_printf(out, ", %s %" PRId64 " k%" PRId64 " s%" PRId64 " p%" PRId64 "%s%s%s",
                   words[b->kind], b->out, b->kernel, b->stride, b->padding,
                   b->depthwise ? " depthwise" : "", b->batch_norm ? " norm" : "",
                   b->linear ? " linear" : "");
        if (b->kind == BLOCK_RESIDUAL)
            str_printf(out, " of %zu", b->inner);
    }
}

static void add_model(const struct train_model_spec *m, const struct net_data *data,
                      struct str *out)
{
    static const char *const acts[] = {"relu", "tanh", "gelu"};
    switch (m->kind) { /* no default: another kind's layers would be those of an mlp */
    case TRAIN_CNN:
        add_cnn(m, out);
        break;
    case TRAIN_BOOSTED_TREES:
    case TRAIN_RANDOM_FOREST:
    case TRAIN_EXTRA_TREES:
        str_puts(out, "trees");
        break;
    case TRAIN_KNN:
        str_puts(out, "knn");
        break;
    case TRAIN_NAIVE_BAYES:
        str_puts(out, "naive_bayes");
        break;
    case TRAIN_KMEANS:
        str_puts(out, "kmeans");
        break;
    case TRAIN_TRANSFORMER:
        str_printf(out, "transformer %" PRId64 " x %" PRId64 ", %" PRId64 " heads, %" PRId64 "%s",
                   m->depth, m->width, m->heads, m->context, m->dropping ? " dropout" : "");
        break;
    case TRAIN_MLP:
    case TRAIN_LINEAR: /* an mlp without hidden layers */
        add_mlp(m, out);
        if (data->n_categories > 0)
            str_printf(out, " embedding %" PRId64, m->embedding);
        break;
    }
    if (m->kind == TRAIN_CNN || (m->kind == TRAIN_MLP && m->n_layers > 0))
        str_printf(out, "; %s", acts[m->activation]);
}

void net_signature(const struct train_spec *spec, const struct net_data *data, struct str *out)
{
    static const char *const losses[] = {[TRAIN_CROSS_ENTROPY] = "cross_entropy",
                                         [TRAIN_MSE] = "mse",
                                         [TRAIN_HUBER] = "huber",
                                         [TRAIN_BCE] = "bce"};
    static const char *const ways[] = {[TRAIN_HOLD_COLUMN] = "column",
                                       [TRAIN_HOLD_ORDER] = "order",
                                       [TRAIN_HOLD_GROUPS] = "groups"};
    char fraction[32];
    str_printf(out, "%s; ", spec->dataset);
    add_model(&spec->model, data, out);
    str_printf(out, "; %s; %s; micro-batch %" PRId64 "; split %s %" PRId64,
               losses[train_spec_loss(spec, data->task)],
               spec->precision == TRAIN_BFLOAT16 ? "bfloat16" : "float32", spec->micro_batch,
               as_format_double(spec->validation_fraction, fraction, sizeof fraction),
               spec->validation_seed);
    if (spec->holdout == TRAIN_HOLD_FOLDS)
        str_printf(out, " in %" PRId64 " folds", spec->folds);
    else if (spec->holdout != TRAIN_HOLD_SHARE)
        str_printf(out, " by %s '%s'", ways[spec->holdout], spec->holdout_column);
    else if (spec->validation_split == TRAIN_SPLIT_STRATIFIED &&
             data->task == DATASET_CLASSIFICATION)
        str_puts(out, " stratified");
    if (spec->holdout == TRAIN_HOLD_FOLDS && spec->validation_split == TRAIN_SPLIT_STRATIFIED)
        str_puts(out, " stratified");
    if (spec->weights)
        str_printf(out, "; weights '%s'", spec->weights);
    if (spec->standardize)
        str_puts(out, "; standardized");
    if (train_spec_bins(spec) > 0)
        str_printf(out, "; numbers in %zu bins", train_spec_bins(spec));
    if (spec->target_transform != TARGET_AS_IS)
        str_printf(out, "; target %s", target_transform_names[spec->target_transform]);
    if (net_augments(spec, data->kind))
        str_puts(out, "; augmented");
    if (spec->optimizer.ema > 0)
        str_puts(out, "; averaged");
    if (spec->balanced || spec->n_class_weights > 0)
        str_puts(out, "; class weights");
    if (spec->privacy.given)
        str_puts(out, "; private");
}
