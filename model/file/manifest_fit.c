/* Does what a member's preprocessing learnt go with its document and its data set? The record alone
 * is checked by data/preprocess, the document by model/document. Both say how rows and targets are
 * encoded, since one is what training was asked for and the other what it did. A manifest in which
 * they differ was changed after training, and would predict something else than was measured. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "data/dataset_view.h"
#include "model/file/model_file_priv.h"

struct fit_check {
    const char *pointer; /* of the member */
    const struct model_member *m;
    struct as_err *err;
};

/* A field of the record whose value must be that of another field. */
static as_status differs(const struct fit_check *c, const char *field, const char *found,
                         const char *expected, const char *other)
{
    char at[AS_ERR_POINTER_MAX];
    (void)snprintf(at, sizeof at, "%s/preprocessing/%s", c->pointer, field);
    return as_fail_at(c->err, AS_E_INVAL, at, "%s: found %s, expected %s: so says %s/%s", at, found,
                      expected, c->pointer, other);
}

static as_status check_standardize(const struct fit_check *c)
{
    const struct train_spec *spec = c->m->spec;
    bool cells = train_model_sees_cells(&spec->model); /* such kinds do not need it */
    bool expected = spec->standardize && !cells;
    if (c->m->fit->standardize == expected)
        return AS_OK;
    return differs(c, "standardize", expected ? "false" : "true", expected ? "true" : "false",
                   cells ? "train/model/kind" : "train/standardize");
}

static as_status check_bins(const struct fit_check *c)
{
    char found[24], expected[24];
    size_t bins = c->m->info->input == DATASET_TABLE ? train_spec_bins(c->m->spec) : 0;
    if (c->m->fit->bins == bins)
        return AS_OK;
    (void)snprintf(found, sizeof found, "%zu", c->m->fit->bins);
    (void)snprintf(expected, sizeof expected, "%zu", bins);
    return differs(c, "bins", found, expected, "train/numbers");
}

/* Without standardising nothing is taken off and nothing divided. */
static as_status check_moments_of_none(const struct fit_check *c)
{
    const struct preprocess *fit = c->m->fit;
    for (size_t i = 0; !fit->standardize && i < fit->n_scales; i++)
        if (fit->mean[i] != 0 || fit->scale[i] != 1)
            return as_fail_at(c->err, AS_E_INVAL, c->pointer,
                              "%s/preprocessing: the mean of input %zu is %g and its scale %g, "
                              "expected 0 and 1: so says %s/preprocessing/standardize (false)",
                              c->pointer, i, (double)fit->mean[i], (double)fit->scale[i],
                              c->pointer);
    return AS_OK;
}

/* Categories are codes for kinds that see cells and for embeddings, else inputs of their own. */
static as_status check_codes(const struct fit_check *c)
{
    bool cells = train_model_sees_cells(&c->m->spec->model);
    bool network = train_model_is_network(&c->m->spec->model);
    bool expected = cells || (network && c->m->spec->model.embedding > 0);
    if (dataset_categorical_columns(c->m->info) == 0 || (c->m->fit->n_codes > 0) == expected)
        return AS_OK;
    return differs(c, "columns", expected ? "categories with the field input" : "codes",
                   expected ? "codes" : "categories with the field input",
                   cells ? "train/model/kind" : "train/model/embedding");
}

static as_status check_target(const struct fit_check *c)
{
    const struct preprocess *fit = c->m->fit;
    if (c->m->info->task != DATASET_REGRESSION)
        return AS_OK;
    if (fit->target_transform != c->m->spec->target_transform)
        return differs(c, "target/transform", target_transform_names[fit->target_transform],
                       target_transform_names[c->m->spec->target_transform],
                       "train/target/transform");
    bool shares = train_spec_loss(c->m->spec, DATASET_REGRESSION) == TRAIN_BCE;
    for (size_t i = 0; shares && i < fit->n_targets; i++)
        if (fit->target_mean[i] != 0 || fit->target_scale[i] != 1)
            return differs(c, "target", "standardised targets",
                           "means 0 and scales 1, as of shares", "train/loss (bce)");
    return AS_OK;
}

static as_status check_context(const struct fit_check *c)
{
    char found[24], expected[24];
    if (c->m->info->input != DATASET_TOKEN_TEXT ||
        (int64_t)c->m->fit->context == c->m->spec->model.context)
        return AS_OK;
    (void)snprintf(found, sizeof found, "%zu", c->m->fit->context);
    (void)snprintf(expected, sizeof expected, "%" PRId64, c->m->spec->model.context);
    return differs(c, "text/context", found, expected, "train/model/context");
}

/* Training and held-out rows are rows of the data set; of a text, windows of its tokens. */
static as_status check_rows(const struct fit_check *c)
{
    const struct preprocess *fit = c->m->fit;
    size_t rows = c->m->info->n_rows, used = fit->n_train + fit->n_held;
    bool is_text = c->m->info->input == DATASET_TOKEN_TEXT;
    if (is_text && fit->n_tokens <= rows && fit->n_train * fit->context <= fit->n_tokens)
        used = fit->n_tokens + fit->n_held * fit->context;
    else if (is_text)
        used = SIZE_MAX;
    if (used <= rows)
        return AS_OK;
    return as_fail_at(c->err, AS_E_INVAL, c->pointer,
                      "%s/preprocessing: found %zu training_rows and %zu validation_rows%s, "
                      "expected at most the %zu of /dataset/rows",
                      c->pointer, fit->n_train, fit->n_held,
                      is_text ? " (windows of training_tokens)" : "", rows);
}

as_status model_manifest_fit(const struct model_member *m, const char *pointer, struct as_err *err)
{
    const struct fit_check c = {pointer, m, err};
    as_status st = check_standardize(&c);
    if (st == AS_OK)
        st = check_moments_of_none(&c);
    if (st == AS_OK)
        st = check_codes(&c);
    if (st == AS_OK)
        st = check_bins(&c);
    if (st == AS_OK)
        st = check_target(&c);
    if (st == AS_OK)
        st = check_context(&c);
    return st == AS_OK ? check_rows(&c) : st;
}

/* ---- the tensors that repeat the record ---- */

#define MOMENTS 4
static const char *const moments[MOMENTS] = {"input.mean", "input.scale", "target.mean",
                                             "target.scale"};

bool model_file_is_moment(const char *name)
{
    for (size_t i = 0; i < MOMENTS; i++)
        if (as_streq(name, moments[i]))
            return true;
    return false;
}

/* What the record says in place i of a tensor. */
static float recorded(const struct preprocess *fit, size_t which, size_t i)
{
    switch (which) {
    case 0:
        return fit->mean[i];
    case 1:
        return fit->scale[i];
    case 2:
        return (float)fit->target_mean[i];
    default:
        return (float)fit->target_scale[i];
    }
}

static as_status check_moment(const struct model_file *f, size_t member, size_t which,
                              struct as_err *err)
{
    const struct preprocess *fit = f->members[member].fit;
    const struct safetensors_tensor *t = model_file_find(f, member, moments[which]);
    size_t n = which < 2 ? fit->n_scales : fit->n_targets;
    if (!t)
        return AS_OK; /* trees have none, and need none */
    if (t->type != SAFETENSORS_F32 || t->size_bytes != n * sizeof(float))
        return as_fail(err, AS_E_INVAL,
                       "/members/%zu/preprocessing: it has %zu numbers for the tensor '%s' of %zu "
                       "bytes",
                       member, n, moments[which], t->size_bytes);
    for (size_t i = 0; i < n; i++) {
        float v, expected = recorded(fit, which, i);
        uint32_t bits, expected_bits; /* 0 and -0 differ */
        memcpy(&v, (const char *)t->data + i * sizeof v, sizeof v);
        memcpy(&bits, &v, sizeof bits);
        memcpy(&expected_bits, &expected, sizeof expected_bits);
        if (bits != expected_bits)
            return as_fail(err, AS_E_INVAL,
                           "/members/%zu/preprocessing: the %s of %s %zu is %.9g, but the tensor "
                           "'%s' has %.9g",
                           member, which % 2 ? "scale" : "mean", which < 2 ? "input" : "target", i,
                           (double)expected, moments[which], (double)v);
    }
    return AS_OK;
}

as_status model_file_moments(const struct model_file *f, struct as_err *err)
{
    for (size_t i = 0; i < f->n; i++)
        for (size_t which = 0; which < MOMENTS; which++) {
            as_status st = check_moment(f, i, which, err);
            if (st != AS_OK)
                return st;
        }
    return AS_OK;
}
