/* The target's part of the record: mean and scale, the transformation, and its quantiles. The
 * reader checks everything that a prediction relies on (finite, ascending, as many lists as
 * targets), because a record may come with a model file from elsewhere. A record without a
 * transformation is written as before there were any, so old and new files have equal bytes. */
#include "data/preprocess/record_priv.h"

#include <float.h>
#include <math.h>

#include "base/mem.h"
#include "data/preprocess/target_unit.h"

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the record of the target");
}

/* ---- writing ---- */

static json_t *doubles_to_json(const double *v, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_number_new(v[i])) != 0)
            return NULL;
    return as_steal(list);
}

static json_t *quantiles_to_json(const struct preprocess *p)
{
    JSON_AUTO list = json_array();
    for (size_t t = 0; t < p->n_targets; t++)
        if (json_array_append_new(
                list, doubles_to_json(p->quantiles + t * p->n_quantiles, p->n_quantiles)) != 0)
            return NULL;
    return as_steal(list);
}

json_t *record_target_new(const struct preprocess *p)
{
    JSON_AUTO obj = json_pack("{s:o, s:o}", "mean", doubles_to_json(p->target_mean, p->n_targets),
                              "scale", doubles_to_json(p->target_scale, p->n_targets));
    const char *name = target_transform_names[p->target_transform];
    int bad = obj == NULL;
    if (p->target_transform != TARGET_AS_IS)
        bad |= json_object_set_new(obj, "transform", json_string(name));
    if (p->target_transform == TARGET_QUANTILE)
        bad |= json_object_set_new(obj, "quantiles", quantiles_to_json(p));
    return bad ? NULL : as_steal(obj);
}

/* ---- reading ---- */

/* Read the numbers of one target; they ascend. */
static as_status read_quantile_row(const json_t *row, const char *pointer, size_t n, double *ret,
                                   struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(row, i);
        ret[i] = json_number_value(item);
        if (json_array_size(row) != n || !json_is_number(item) ||
            !(fabs(ret[i]) <= (double)FLT_MAX) || (i && ret[i] < ret[i - 1]))
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "%s: expected lists of %zu ascending numbers, one for each target",
                              pointer, n);
    }
    return AS_OK;
}

static as_status read_quantiles(struct json_fields *f, struct preprocess *p, struct as_err *err)
{
    json_t *list = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    as_status st = json_fields_array(f, "quantiles", JSON_REQUIRED, &list, err);
    if (st != AS_OK)
        return st;
    size_t n = json_array_size(json_array_get(list, 0));
    json_pointer_child(f->pointer, "quantiles", pointer);
    if (json_array_size(list) != p->n_targets || n == 0 || n > TARGET_MAX_QUANTILES ||
        n * p->n_targets > TARGET_MAX_ALL_QUANTILES)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found %zu lists of %zu numbers, expected %zu of 1 to %zu", pointer,
                          json_array_size(list), n, p->n_targets, TARGET_MAX_QUANTILES);
    p->n_quantiles = n;
    p->quantiles = as_calloc(p->n_targets * n, sizeof *p->quantiles);
    if (!p->quantiles)
        return out_of_memory(err);
    for (size_t t = 0; st == AS_OK && t < p->n_targets; t++)
        st = read_quantile_row(json_array_get(list, t), pointer, n, p->quantiles + t * n, err);
    return st;
}

as_status record_target_read(struct json_fields *parent, const struct dataset_info *info,
                             struct preprocess *p, struct as_err *err)
{
    json_t *obj = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    struct json_fields f;
    int transform = TARGET_AS_IS;
    size_t n = info->n_outputs;
    as_status st = json_fields_object(parent, "target", JSON_REQUIRED, &obj, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(parent->pointer, "target", pointer);
    st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    p->n_targets = n;
    p->target_mean = as_calloc(n, sizeof *p->target_mean);
    p->target_scale = as_calloc(n, sizeof *p->target_scale);
    if (!p->target_mean || !p->target_scale)
        return out_of_memory(err);
    st = record_read_moments(&f, n, DBL_TRUE_MIN, (double)FLT_MAX, p->target_mean, p->target_scale,
                             err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(&f, "transform", JSON_OPTIONAL, target_transform_names, &transform, err);
    if (st != AS_OK)
        return st;
    p->target_transform = (target_transform)transform;
    if (p->target_transform == TARGET_QUANTILE)
        st = read_quantiles(&f, p, err);
    if (st != AS_OK)
        return st;
    return json_fields_end(&f, err);
}
