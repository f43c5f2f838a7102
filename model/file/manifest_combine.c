/* The `combine` of a manifest. Weights and biases are bounded, so that what is computed with them in
 * double is finite wherever the members' predictions are. */
#include <float.h>
#include <math.h>

#include "base/json.h"
#include "base/str.h"
#include "data/dataset_json.h"
#include "model/file/model_file_priv.h"

#define WEIGHT_MAX 1e30
#define BIAS_MAX ((double)FLT_MAX)

static const char *const inputs[] = {"outputs", "log", NULL};

/* The numbers of a list. */
static as_status read_numbers(const json_t *list, const char *pointer, double most, double *ret,
                              struct as_err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(pointer, i, at);
        ret[i] = json_number_value(v);
        if (!json_is_number(v) || !(fabs(ret[i]) <= most))
            return as_fail_at(err, AS_E_INVAL, at, "%s: expected a number from %g to %g", at, -most,
                              most);
    }
    return AS_OK;
}

static as_status read_weights(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "weights", JSON_REQUIRED, &list, err);
    if (st != AS_OK)
        return st;
    size_t n = json_array_size(list);
    if (n == 0 || n > MODEL_FILE_MAX_MEMBERS)
        return as_fail_at(err, AS_E_INVAL, "/combine/weights",
                          "/combine/weights: found %zu, expected 1 to %zu", n,
                          MODEL_FILE_MAX_MEMBERS);
    file->combine.n_inputs = n;
    file->combine_weights = as_calloc(n, sizeof *file->combine_weights);
    if (!file->combine_weights)
        return as_fail_nomem(err);
    st = read_numbers(list, "/combine/weights", WEIGHT_MAX, file->combine_weights, err);
    for (size_t i = 0; st == AS_OK && i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index("/combine/weights", i, at);
        if (file->combine_weights[i] == 0)
            return as_fail_at(err, AS_E_INVAL, at, "%s: found 0, expected another number", at);
    }
    file->combine.weights = file->combine_weights;
    return st;
}

static as_status read_biases(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "biases", JSON_REQUIRED, &list, err);
    if (st != AS_OK)
        return st;
    size_t n = json_array_size(list);
    if (n != file->info.n_outputs)
        return as_fail_at(err, AS_E_INVAL, "/combine/biases",
                          "/combine/biases: found %zu, expected %zu: one for each output", n,
                          file->info.n_outputs);
    file->combine_biases = as_calloc(n, sizeof *file->combine_biases);
    if (!file->combine_biases)
        return as_fail_nomem(err);
    file->combine.biases = file->combine_biases;
    return read_numbers(list, "/combine/biases", BIAS_MAX, file->combine_biases, err);
}

static as_status read_linear(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    int input = 0;
    bool of_classes = file->info.task == DATASET_CLASSIFICATION;
    if (file->info.task == DATASET_LANGUAGE_MODELING)
        return as_fail_at(err, AS_E_INVAL, "/combine/kind",
                          "/combine/kind: found 'linear' for a model of text, expected 'mean'");
    as_status st = json_fields_word(f, "inputs", JSON_REQUIRED, inputs, &input, err);
    if (st != AS_OK)
        return st;
    if ((input == 1) != of_classes)
        return as_fail_at(err, AS_E_INVAL, "/combine/inputs",
                          "/combine/inputs: found '%s', expected '%s' for a %s", inputs[input],
                          inputs[of_classes], of_classes ? "classification" : "regression");
    file->combine.of_logs = of_classes;
    st = read_weights(f, file, err);
    return st == AS_OK ? read_biases(f, file, err) : st;
}

as_status model_residual_info(const struct dataset_info *info, struct dataset_info *ret,
                              struct as_err *err)
{
    JSON_AUTO obj = dataset_info_to_json(info);
    if (!obj || json_object_set_new(obj, "task", json_string("regression")) != 0)
        return as_fail_nomem(err);
    (void)json_object_del(obj, "classes");
    return dataset_info_from_json(obj, "/dataset", ret, err);
}

static as_status read_sum(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    (void)f;
    if (file->info.task == DATASET_LANGUAGE_MODELING)
        return as_fail_at(err, AS_E_INVAL, "/combine/kind",
                          "/combine/kind: found 'sum' for a model of text, expected 'mean'");
    file->combine.of_logs = file->info.task == DATASET_CLASSIFICATION;
    return model_residual_info(&file->info, &file->residual, err);
}

static as_status read_mean(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    (void)f, (void)file, (void)err;
    return AS_OK;
}

static const struct {
    const char *name;
    as_status (*read)(struct json_fields *f, struct model_file *file, struct as_err *err);
} kinds[] = {
    [MODEL_MEAN] = {"mean", read_mean},
    [MODEL_LINEAR] = {"linear", read_linear},
    [MODEL_SUM] = {"sum", read_sum},
};

as_status model_manifest_combine(const json_t *obj, struct model_file *file, struct as_err *err)
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
    while (i < AS_ARRAY_LEN(kinds) && !as_streq(kind, kinds[i].name))
        i++;
    if (i == AS_ARRAY_LEN(kinds))
        return as_fail_at(err, AS_E_UNSUPPORTED, "/combine/kind",
                          "/combine/kind: found '%.60s', this version knows mean, linear and sum",
                          kind);
    file->combine = (struct model_combine){.kind = (model_combine_kind)i, .n_inputs = 1};
    st = kinds[i].read(&f, file, err);
    return st == AS_OK ? json_fields_end(&f, err) : st;
}

/* ---- members and inputs ---- */

/* Members of an input follow each other. */
static as_status check_order(const struct model_file *file, size_t i, struct as_err *err)
{
    size_t input = file->members[i].input, before = i > 0 ? file->members[i - 1].input : 0;
    char at[AS_ERR_POINTER_MAX];
    if (input == before || (i > 0 && input == before + 1))
        return AS_OK;
    json_pointer_index("/members", i, at);
    return as_fail_at(err, AS_E_INVAL, at, "%s/input: found %zu, expected %zu%s", at, input, before,
                      i > 0 ? " or the next one" : "");
}

/* A sum is what the first member predicts, and corrections of it. */
static as_status check_sum(const struct model_file *file, struct as_err *err)
{
    if (file->members[0].weight == 1)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/members/0/weight",
                      "/members/0/weight: found %g, expected 1: the first of a sum",
                      file->members[0].weight);
}

as_status model_manifest_inputs(const struct model_file *file, struct as_err *err)
{
    double sum = 0;
    if (file->combine.kind == MODEL_SUM)
        return check_sum(file, err);
    for (size_t i = 0; i < file->n; i++) {
        bool last = i + 1 == file->n || file->members[i + 1].input != file->members[i].input;
        as_status st = check_order(file, i, err);
        if (st != AS_OK)
            return st;
        sum += file->members[i].weight;
        if (!last)
            continue;
        if (fabs(sum - 1) > MODEL_FILE_WEIGHT_SLACK && file->combine.kind == MODEL_MEAN)
            return as_fail_at(err, AS_E_INVAL, "/members",
                              "/members: the sum of the weights is %.9g, expected 1", sum);
        if (fabs(sum - 1) > MODEL_FILE_WEIGHT_SLACK)
            return as_fail_at(err, AS_E_INVAL, "/members",
                              "/members: the sum of the weights of input %zu is %.9g, expected 1",
                              file->members[i].input, sum);
        sum = 0;
    }
    if (file->members[file->n - 1].input + 1 != file->combine.n_inputs)
        return as_fail_at(err, AS_E_INVAL, "/members",
                          "/members: they are of %zu inputs, /combine/weights has %zu",
                          file->members[file->n - 1].input + 1, file->combine.n_inputs);
    return AS_OK;
}
