/* The `combine` of a manifest. Weights and biases are bounded, so that what is computed with them
 * in double is finite wherever the members' predictions are. */
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

/* The weights of inputs: of a mean above 0, with the sum 1. Those of inputs that further layers see
 * may be 0 (manifest_stacks.c). */
static as_status check_weights(const struct model_file *file, bool has_stacks, struct as_err *err)
{
    bool is_mean = file->combine.kind == MODEL_MEAN;
    double sum = 0;
    for (size_t i = 0; i < file->combine.n_inputs; i++) {
        double w = file->combine_weights[i];
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index("/combine/weights", i, at);
        if ((w == 0 && !has_stacks) || (is_mean && w < 0))
            return as_fail_at(err, AS_E_INVAL, at, "%s: found %g, expected %s", at, w,
                              is_mean ? "more than 0" : "another number");
        sum += w;
    }
    if (is_mean && fabs(sum - 1) > MODEL_FILE_WEIGHT_SLACK)
        return as_fail_at(err, AS_E_INVAL, "/combine/weights",
                          "/combine/weights: their sum is %.9g, expected 1", sum);
    return AS_OK;
}

/* The weights of inputs say how many inputs there are. */
static as_status read_weights(struct json_fields *f, json_need need, struct model_file *file,
                              struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "weights", need, &list, err);
    if (st != AS_OK || !list)
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
    file->combine.weights = file->combine_weights;
    st = read_numbers(list, "/combine/weights", WEIGHT_MAX, file->combine_weights, err);
    return st == AS_OK ? check_weights(file, json_object_get(f->obj, "stacks"), err) : st;
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
                          "/combine/inputs: found '%s', expected '%s' for a %s (by /dataset/task)",
                          inputs[input], inputs[of_classes],
                          of_classes ? "classification" : "regression");
    file->combine.of_logs = of_classes;
    st = read_weights(f, JSON_REQUIRED, file, err);
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
    (void)f, (void)file, (void)err;
    return AS_OK; /* its one input is a sum */
}

static as_status read_mean(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    return read_weights(f, JSON_OPTIONAL, file, err);
}

static const struct {
    const char *name;
    as_status (*read)(struct json_fields *f, struct model_file *file, struct as_err *err);
} kinds[] = {
    [MODEL_MEAN] = {"mean", read_mean},
    [MODEL_LINEAR] = {"linear", read_linear},
    [MODEL_SUM] = {"sum", read_sum},
    [MODEL_BY] = {"by", model_manifest_by},
};

/* ---- inputs that are sums ---- */

static as_status list_sums(const json_t *list, struct model_file *file, struct as_err *err)
{
    json_int_t before = -1, last = (json_int_t)file->combine.n_inputs - 1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index("/combine/sums", i, at);
        if (!json_is_integer(v) || json_integer_value(v) <= before || json_integer_value(v) > last)
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: expected the index of an input, %lld to %lld, in rising order",
                              at, (long long)before + 1, (long long)last);
        before = json_integer_value(v);
        file->combine_sums[before] = true;
    }
    return AS_OK;
}

static as_status read_sums(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    json_t *list = NULL;
    as_status st = AS_OK;
    file->combine_sums = as_calloc(file->combine.n_inputs, sizeof *file->combine_sums);
    file->combine.sums = file->combine_sums;
    if (!file->combine_sums)
        return as_fail_nomem(err);
    if (file->combine.kind == MODEL_SUM)
        file->combine_sums[0] = true;
    else if (model_has_inputs(&file->combine))
        st = json_fields_array(f, "sums", JSON_OPTIONAL, &list, err);
    if (st == AS_OK)
        st = list_sums(list, file, err);
    if (st != AS_OK || (file->combine.kind != MODEL_SUM && json_array_size(list) == 0))
        return st;
    if (file->info.task == DATASET_LANGUAGE_MODELING)
        return as_fail_at(err, AS_E_INVAL, "/combine/kind",
                          "/combine/kind: found a sum for a model of text, expected 'mean'");
    return model_residual_info(&file->info, &file->residual, err);
}

/* ---- what follows the combination ---- */

static as_status read_calibration(struct json_fields *f, struct model_file *file,
                                  struct as_err *err)
{
    struct combine_calibration *c = &file->combine.calibration;
    struct json_fields own;
    json_t *obj = NULL;
    as_status st = json_fields_object(f, "calibration", JSON_OPTIONAL, &obj, err);
    if (st != AS_OK || !obj)
        return st;
    if (file->info.task != DATASET_CLASSIFICATION || file->info.n_outputs < 2)
        return as_fail_at(err, AS_E_INVAL, "/combine/calibration",
                          "/combine/calibration: only probabilities of classes have one "
                          "(/dataset/task)");
    st = json_fields_init(&own, obj, "/combine/calibration", err);
    if (st == AS_OK)
        st = json_fields_double(&own, "slope", JSON_REQUIRED, COMBINE_SLOPE_MIN, COMBINE_SLOPE_MAX,
                                &c->slope, err);
    if (st == AS_OK && file->info.n_outputs == 2)
        st = json_fields_double(&own, "bias", JSON_OPTIONAL, -COMBINE_BIAS_MAX, COMBINE_BIAS_MAX,
                                &c->bias, err);
    return st == AS_OK ? json_fields_end(&own, err) : st;
}

static as_status read_threshold(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    if (!json_object_get(f->obj, "threshold"))
        return AS_OK;
    if (file->info.task != DATASET_CLASSIFICATION || file->info.n_outputs != 2)
        return as_fail_at(err, AS_E_INVAL, "/combine/threshold",
                          "/combine/threshold: only a model of two classes has one (/dataset)");
    return json_fields_double(f, "threshold", JSON_REQUIRED, 0, 1, &file->combine.threshold, err);
}

static as_status read_class_weights(struct json_fields *f, struct model_file *file,
                                    struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "class_weights", JSON_OPTIONAL, &list, err);
    size_t n = json_array_size(list);
    if (st != AS_OK || !list)
        return st;
    if (file->info.task != DATASET_CLASSIFICATION || file->info.n_outputs < 3 ||
        n != file->info.n_outputs)
        return as_fail_at(err, AS_E_INVAL, "/combine/class_weights",
                          "/combine/class_weights: found %zu, expected one for each of more than "
                          "two classes (by /dataset)",
                          n);
    file->class_weights = as_calloc(n, sizeof *file->class_weights);
    if (!file->class_weights)
        return as_fail_nomem(err);
    file->combine.class_weights = file->class_weights;
    st = read_numbers(list, "/combine/class_weights", WEIGHT_MAX, file->class_weights, err);
    for (size_t i = 0; st == AS_OK && i < n; i++)
        if (!(file->class_weights[i] > 0))
            return as_fail_at(err, AS_E_INVAL, "/combine/class_weights",
                              "/combine/class_weights/%zu: found %g, expected more than 0", i,
                              file->class_weights[i]);
    return st;
}

/* For a combination whose fields do not say how many inputs it has: the members do. Those that name
 * none are refused with the members. */
static size_t inputs_of_members(const json_t *members)
{
    size_t n = json_array_size(members);
    json_int_t last = json_integer_value(json_object_get(json_array_get(members, n - 1), "input"));
    return last < 0 || n == 0 ? 1 : (size_t)last >= n ? n : (size_t)last + 1;
}

as_status model_manifest_combine(const json_t *obj, const json_t *members, struct model_file *file,
                                 struct as_err *err)
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
        return as_fail_at(
            err, AS_E_UNSUPPORTED, "/combine/kind",
            "/combine/kind: found '%.60s', this version knows mean, linear, sum and by", kind);
    file->combine =
        (struct model_combine){.kind = (model_combine_kind)i, .n_inputs = 1, .threshold = NAN};
    if (file->combine.kind == MODEL_BY)
        file->combine.n_inputs = inputs_of_members(members);
    st = kinds[i].read(&f, file, err);
    if (st == AS_OK)
        st = read_sums(&f, file, err);
    if (st == AS_OK)
        st = model_manifest_stacks(&f, file, err);
    if (st == AS_OK)
        st = read_calibration(&f, file, err);
    if (st == AS_OK)
        st = read_threshold(&f, file, err);
    if (st == AS_OK)
        st = read_class_weights(&f, file, err);
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

/* A sum is what its first member predicts, and corrections of it. */
static as_status check_sum(const struct model_file *file, size_t first, size_t last,
                           struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    if (first == last)
        return as_fail_at(err, AS_E_INVAL, "/combine",
                          "/combine: found a sum of one member (input %zu), expected at least 2 in "
                          "/members",
                          file->members[first].input);
    if (file->members[first].weight == 1)
        return AS_OK;
    json_pointer_index("/members", first, at);
    return as_fail_at(err, AS_E_INVAL, at, "%s/weight: found %g, expected 1: the first of a sum",
                      at, file->members[first].weight);
}

/* The members of an input from `first` to `last` are a mean of weights with the sum 1, or a sum. */
static as_status check_input(const struct model_file *file, size_t first, size_t last,
                             struct as_err *err)
{
    size_t input = file->members[first].input;
    double sum = 0;
    if (file->combine.sums[input])
        return check_sum(file, first, last, err);
    for (size_t i = first; i <= last; i++)
        sum += file->members[i].weight;
    if (fabs(sum - 1) <= MODEL_FILE_WEIGHT_SLACK)
        return AS_OK;
    if (!model_has_inputs(&file->combine))
        return as_fail_at(err, AS_E_INVAL, "/members",
                          "/members: the sum of the weights is %.9g, expected 1", sum);
    return as_fail_at(err, AS_E_INVAL, "/members",
                      "/members: the sum of the weights of input %zu is %.9g, expected 1", input,
                      sum);
}

as_status model_manifest_inputs(struct model_file *file, struct as_err *err)
{
    size_t first = 0, n_inputs = file->combine.n_inputs;
    file->first = as_calloc(n_inputs + 1, sizeof *file->first);
    if (!file->first)
        return as_fail_nomem(err);
    for (size_t i = 0; i < file->n; i++) {
        bool last = i + 1 == file->n || file->members[i + 1].input != file->members[i].input;
        as_status st = check_order(file, i, err);
        if (st == AS_OK && last)
            st = check_input(file, first, i, err);
        if (st != AS_OK)
            return st;
        first = last ? i + 1 : first;
        file->first[file->members[i].input + 1] = i + 1;
    }
    if (file->members[file->n - 1].input + 1 != n_inputs)
        return as_fail_at(err, AS_E_INVAL, "/members",
                          "/members: they are of %zu inputs, /combine has %zu",
                          file->members[file->n - 1].input + 1, n_inputs);
    return AS_OK;
}
