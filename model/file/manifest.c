/* The manifest of a model file: checks it and reads what it says.
 *
 * The writer calls this, too, for what it is about to write: a file that was written is a file that
 * can be read. The manifest is trusted in nothing: each member's document and preprocessing are
 * parsed by the rooms that own them, against the record of the data set, so that what is computed
 * with a member later needs no further checks than the sizes of its tensors. */
#include <math.h>

#include "base/json.h"
#include "base/str.h"
#include "data/dataset_json.h"
#include "data/preprocess/record.h"
#include "model/file/model_file_priv.h"

#define MAX_RATE 1e9      /* weights of a sum */
#define WEIGHT_SLACK 1e-6 /* how far from 1 the sum of the weights may be */

static as_status read_document(struct json_fields *f, struct train_spec *ret,
                               struct model_member *m, struct as_err *err)
{
    json_t *train = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    as_status st = json_fields_object(f, "train", JSON_REQUIRED, &train, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(f->pointer, "train", pointer);
    st = train_spec_parse(train, pointer, ret, err);
    if (st != AS_OK)
        return st;
    m->train = train;
    m->spec = ret;
    return AS_OK;
}

static as_status read_fit(struct json_fields *f, struct preprocess *ret, struct model_member *m,
                          struct as_err *err)
{
    json_t *record = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    as_status st = json_fields_object(f, "preprocessing", JSON_REQUIRED, &record, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(f->pointer, "preprocessing", pointer);
    st = preprocess_from_json(record, pointer, m->info, ret, err);
    if (st != AS_OK)
        return st;
    m->fit = ret;
    return AS_OK;
}

/* Where a member comes from. */
static as_status read_origin(struct json_fields *f, struct model_member *m, struct as_err *err)
{
    as_status st = json_fields_i64(f, "trial", JSON_OPTIONAL, 1, INT64_MAX, &m->trial, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "attempt", JSON_OPTIONAL, 1, INT64_MAX, &m->attempt, err);
    if (st != AS_OK)
        return st;
    return json_fields_text(f, "seed", JSON_OPTIONAL, 1, 20, &m->seed, err);
}

static as_status read_member(const json_t *obj, const char *pointer, struct model_file *file,
                             size_t i, struct as_err *err)
{
    struct json_fields f;
    struct model_member *m = &file->members[i];
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = json_fields_double(&f, "weight", JSON_REQUIRED, 0,
                            file->combine == MODEL_SUM ? MAX_RATE : 1 + WEIGHT_SLACK, &m->weight,
                            err);
    m->info = file->combine == MODEL_SUM && i > 0 ? &file->residual : &file->info;
    if (st != AS_OK)
        return st;
    if (!(m->weight > 0))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s/weight: found %g, expected more than 0",
                          pointer, m->weight);
    st = read_document(&f, &file->specs[i], m, err);
    if (st != AS_OK)
        return st;
    st = read_fit(&f, &file->fits[i], m, err);
    if (st != AS_OK)
        return st;
    st = read_origin(&f, m, err);
    if (st != AS_OK)
        return st;
    return json_fields_end(&f, err);
}

static as_status read_members(const json_t *list, struct model_file *file, struct as_err *err)
{
    size_t n = json_array_size(list);
    double sum = 0;
    if (n == 0)
        return as_fail_at(err, AS_E_INVAL, "/members", "/members: found none, expected at least 1");
    if (n > MODEL_FILE_MAX_MEMBERS)
        return as_fail_at(err, AS_E_TOO_LARGE, "/members", "/members: found %zu, at most %zu", n,
                          MODEL_FILE_MAX_MEMBERS);
    file->members = as_calloc(n, sizeof *file->members);
    file->specs = as_calloc(n, sizeof *file->specs);
    file->fits = as_calloc(n, sizeof *file->fits);
    if (!file->members || !file->specs || !file->fits)
        return as_fail_nomem(err);
    file->n = n;
    for (size_t i = 0; i < n; i++) {
        char pointer[AS_ERR_POINTER_MAX];
        json_pointer_index("/members", i, pointer);
        as_status st = read_member(json_array_get(list, i), pointer, file, i, err);
        if (st != AS_OK)
            return st;
        sum += file->members[i].weight;
    }
    if (file->combine == MODEL_SUM && fabs(file->members[0].weight - 1) > WEIGHT_SLACK)
        return as_fail_at(err, AS_E_INVAL, "/members/0/weight",
                          "/members/0/weight: found %g, expected 1: the first of a sum",
                          file->members[0].weight);
    if (file->combine == MODEL_MEAN && fabs(sum - 1) > WEIGHT_SLACK)
        return as_fail_at(err, AS_E_INVAL, "/members",
                          "/members: the sum of the weights is %.9g, expected 1", sum);
    return AS_OK;
}

static const char *const combine_names[] = {"mean", "sum"}; /* by model_combine */

as_status model_residual_info(const struct dataset_info *info, struct dataset_info *ret,
                              struct as_err *err)
{
    JSON_AUTO obj = dataset_info_to_json(info);
    if (!obj || json_object_set_new(obj, "task", json_string("regression")) != 0)
        return as_fail_nomem(err);
    (void)json_object_del(obj, "classes");
    return dataset_info_from_json(obj, "/dataset", ret, err);
}

static as_status read_combine(const json_t *obj, struct model_file *file, struct as_err *err)
{
    struct json_fields f;
    const char *kind = NULL;
    as_status st = json_fields_init(&f, obj, "/combine", err);
    if (st != AS_OK)
        return st;
    st = json_fields_str(&f, "kind", JSON_REQUIRED, &kind, err);
    if (st != AS_OK)
        return st;
    size_t i = 0;
    while (i < AS_ARRAY_LEN(combine_names) && !as_streq(kind, combine_names[i]))
        i++;
    if (i == AS_ARRAY_LEN(combine_names))
        return as_fail_at(err, AS_E_UNSUPPORTED, "/combine/kind",
                          "/combine/kind: found '%.60s', this version knows mean, sum", kind);
    file->combine = (model_combine)i;
    st = json_fields_end(&f, err);
    return st == AS_OK && file->combine == MODEL_SUM
               ? model_residual_info(&file->info, &file->residual, err)
               : st;
}

/* What is kept for people and not used for predicting. */
static as_status check_about(struct json_fields *f, struct as_err *err)
{
    json_t *unused = NULL;
    const char *text = NULL;
    as_status st = json_fields_object(f, "metrics", JSON_OPTIONAL, &unused, err);
    if (st != AS_OK)
        return st;
    st = json_fields_str(f, "measured_on", JSON_OPTIONAL, &text, err);
    if (st != AS_OK)
        return st;
    return json_fields_object(f, "lineage", JSON_OPTIONAL, &unused, err);
}

as_status model_manifest_read(json_t *manifest, struct model_file *file, struct as_err *err)
{
    struct json_fields f;
    json_t *dataset = NULL, *combine = NULL, *members = NULL;
    file->manifest = json_incref(manifest);
    as_status st = json_fields_init(&f, manifest, "", err);
    if (st != AS_OK)
        return st;
    st = json_fields_object(&f, "dataset", JSON_REQUIRED, &dataset, err);
    if (st != AS_OK)
        return st;
    st = json_fields_object(&f, "combine", JSON_REQUIRED, &combine, err);
    if (st != AS_OK)
        return st;
    st = json_fields_array(&f, "members", JSON_REQUIRED, &members, err);
    if (st != AS_OK)
        return st;
    st = check_about(&f, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    st = dataset_info_from_json(dataset, "/dataset", &file->info, err);
    if (st != AS_OK)
        return st;
    st = read_combine(combine, file, err);
    if (st != AS_OK)
        return st;
    return read_members(members, file, err);
}
