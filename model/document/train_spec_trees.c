/* The fields of trees in the section `model` of a train document. They are read for every kind,
 * because a sweep may search over kinds. */
#include <float.h>

#include "model/document/train_spec_priv.h"

#define MAX_ROUNDS 100000
#define MAX_DEPTH 64
#define MAX_LEAVES 65536
#define MAX_BIN 65536
#define LEAST_SHARE 1e-6

static const char *const method_words[] = {"hist", NULL};
static const char *const policy_words[] = {"depthwise", "lossguide", NULL};

/* XGBoost's, as of XGBClassifier and XGBRFClassifier. A forest is an average of trees that each
 * learn the data, so its trees are deeper here, and differ more. Extra trees are scikit-learn's. */
static const struct train_trees_spec boosted_defaults = {.n_estimators = 100,
                                                         .max_depth = 6,
                                                         .max_bin = 256,
                                                         .max_cat_to_onehot = 4,
                                                         .learning_rate = 0.3,
                                                         .min_child_weight = 1,
                                                         .reg_lambda = 1,
                                                         .subsample = 1,
                                                         .colsample_bytree = 1,
                                                         .colsample_bylevel = 1,
                                                         .colsample_bynode = 1};

static void set_defaults(struct train_model_spec *m)
{
    m->trees = boosted_defaults;
    if (m->kind == TRAIN_EXTRA_TREES) {
        m->trees.max_depth = 0;
        m->trees.colsample_bynode = 0;
    }
    if (m->kind != TRAIN_RANDOM_FOREST)
        return;
    m->trees.max_depth = 12;
    m->trees.reg_lambda = 1e-5;
    m->trees.subsample = 0.8;
    m->trees.colsample_bynode = 0;
}

as_status train_spec_parse_trees(struct json_fields *f, struct train_model_spec *m,
                                 struct as_err *err)
{
    struct train_trees_spec *t = &m->trees;
    int method = 0, policy = 0;
    set_defaults(m);
    const struct train_integer integers[] = {
        {"n_estimators", 1, MAX_ROUNDS, &t->n_estimators},
        {"max_depth", 0, MAX_DEPTH, &t->max_depth},
        {"max_leaves", 0, MAX_LEAVES, &t->max_leaves},
        {"max_bin", 2, MAX_BIN, &t->max_bin},
        {"max_cat_to_onehot", 1, (int64_t)DATASET_MAX_CATEGORIES + 1, &t->max_cat_to_onehot},
        {"early_stopping_rounds", 0, MAX_ROUNDS, &t->early_stopping_rounds},
    };
    const struct train_number numbers[] = {
        {"learning_rate", FLT_MIN, 1, &t->learning_rate},
        {"min_child_weight", 0, TRAIN_LARGEST_RATE, &t->min_child_weight},
        {"gamma", 0, TRAIN_LARGEST_RATE, &t->gamma},
        {"max_delta_step", 0, TRAIN_LARGEST_RATE, &t->max_delta_step},
        {"reg_lambda", 0, TRAIN_LARGEST_RATE, &t->reg_lambda},
        {"reg_alpha", 0, TRAIN_LARGEST_RATE, &t->reg_alpha},
        {"subsample", LEAST_SHARE, 1, &t->subsample},
        {"colsample_bytree", LEAST_SHARE, 1, &t->colsample_bytree},
        {"colsample_bylevel", LEAST_SHARE, 1, &t->colsample_bylevel},
        {"colsample_bynode", LEAST_SHARE, 1, &t->colsample_bynode},
    };
    as_status st = train_spec_integers(f, integers, AS_ARRAY_LEN(integers), err);
    if (st != AS_OK)
        return st;
    st = train_spec_numbers(f, numbers, AS_ARRAY_LEN(numbers), err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "tree_method", JSON_OPTIONAL, method_words, &method, err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "grow_policy", JSON_OPTIONAL, policy_words, &policy, err);
    t->by_loss = policy == 1;
    return st;
}
