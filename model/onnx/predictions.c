/* Outputs to predictions, with the operations of model/network/outputs.h: exponentials, units and
 * means in double, results in float32. In float32 a softmax would lose what the networks before it
 * have kept: 1e-5 relative is not much more than their own rounding. */
#include "model/onnx/predictions.h"

#include <float.h>
#include <math.h>

#include "base/json.h"

const char *onnx_both_classes(struct onnx_graph *g, const char *p)
{
    const char *rest = onnx_graph_binary(g, "Sub", onnx_graph_scalar(g, "one", 1), p);
    return onnx_graph_concat(g, (const char *[]){rest, p}, 2, 1);
}

const char *onnx_in_double(struct onnx_graph *g, const char *op, const char *z)
{
    z = onnx_graph_cast(g, z, ONNX_DOUBLE);
    return onnx_graph_cast(g, onnx_graph_unary(g, op, z), ONNX_FLOAT);
}

/* Normal scores to values, as target_unit_back(): the share of the normal distribution below a
 * score is a place among the quantiles, and between two of them there is a straight line. Erf is in
 * float32, which runtimes have. A score that is NaN has no place: Min and Max give it one, and NaN
 * stays in `share`. */
static const char *of_scores(struct onnx_graph *g, const struct preprocess *fit, const char *v)
{
    size_t n = fit->n_quantiles, step = n > 1;
    int64_t *first = onnx_graph_memory(g, fit->n_targets, sizeof *first);
    for (size_t t = 0; first && t < fit->n_targets; t++)
        first[t] = (int64_t)(t * n);
    v = onnx_graph_binary(g, "Mul", v, onnx_graph_doubles(g, "half", (double[]){M_SQRT1_2}, 1));
    v = onnx_graph_unary(g, "Erf", onnx_graph_cast(g, v, ONNX_FLOAT));
    v = onnx_graph_binary(g, "Add", onnx_graph_cast(g, v, ONNX_DOUBLE),
                          onnx_graph_doubles(g, "one", (double[]){1}, 1));
    v = onnx_graph_binary(g, "Mul", v,
                          onnx_graph_doubles(g, "half_range", (double[]){(double)(n - 1) / 2}, 1));
    const char *i = onnx_graph_cast(g, onnx_graph_unary(g, "Floor", v), ONNX_INT64);
    i = onnx_graph_binary(g, "Max", i, onnx_graph_ints(g, "least", (int64_t[]){0}, 1));
    i = onnx_graph_binary(g, "Min", i,
                          onnx_graph_ints(g, "most", (int64_t[]){step ? (int64_t)n - 2 : 0}, 1));
    const char *share = onnx_graph_binary(g, "Sub", v, onnx_graph_cast(g, i, ONNX_DOUBLE));
    const char *q = onnx_graph_doubles(g, "quantiles", fit->quantiles, n * fit->n_targets);
    if (first)
        i = onnx_graph_binary(g, "Add", i, onnx_graph_ints(g, "first", first, fit->n_targets));
    const char *low = onnx_graph_binary(g, "Gather", q, i);
    i = onnx_graph_binary(g, "Add", i, onnx_graph_ints(g, "step", (int64_t[]){(int64_t)step}, 1));
    const char *rise = onnx_graph_binary(g, "Sub", onnx_graph_binary(g, "Gather", q, i), low);
    return onnx_graph_binary(g, "Add", low, onnx_graph_binary(g, "Mul", share, rise));
}

/* The inverse of what was done to the targets (data/preprocess/target_unit.h). */
static const char *undo(struct onnx_graph *g, const struct preprocess *fit, const char *v)
{
    if (fit->target_transform == TARGET_AS_IS)
        return v;
    if (fit->target_transform == TARGET_QUANTILE)
        return of_scores(g, fit, v);
    v = onnx_graph_unary(g, "Exp", v);
    if (fit->target_transform == TARGET_LOG1P)
        v = onnx_graph_binary(g, "Sub", v, onnx_graph_doubles(g, "one", (double[]){1}, 1));
    return onnx_graph_binary(g, "Min", v,
                             onnx_graph_doubles(g, "most", (double[]){(double)FLT_MAX}, 1));
}

const char *onnx_own_unit(struct onnx_graph *g, const struct preprocess *fit, const char *v)
{
    v = onnx_graph_cast(g, v, ONNX_DOUBLE);
    v = onnx_graph_binary(g, "Mul", v,
                          onnx_graph_doubles(g, "target_scale", fit->target_scale, fit->n_targets));
    v = onnx_graph_binary(g, "Add", v,
                          onnx_graph_doubles(g, "target_mean", fit->target_mean, fit->n_targets));
    return onnx_graph_cast(g, undo(g, fit, v), ONNX_FLOAT);
}

const char *onnx_member_predictions(struct onnx_graph *g, const struct model_member *m,
                                    const char *outputs)
{
    train_loss loss = train_spec_loss(m->spec, m->info->task);
    const char *p = outputs;
    if (loss == TRAIN_CROSS_ENTROPY)
        p = onnx_in_double(g, "Softmax", p); /* over the last axis, its default */
    else if (loss == TRAIN_BCE)
        p = onnx_in_double(g, "Sigmoid", p);
    if (m->info->task == DATASET_REGRESSION)
        return onnx_own_unit(g, m->fit, p);
    return loss == TRAIN_BCE ? onnx_both_classes(g, p) : p;
}

/* ---- outputs ---- */

static void add_texts(struct onnx_graph *g, const char *key, char *const *texts, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_string(texts[i])) != 0)
            onnx_graph_fail(g, AS_E_NOMEM, "out of memory");
    AS_AUTO(as_freep) char *text = list ? json_format(list) : NULL;
    if (!text)
        onnx_graph_fail(g, AS_E_NOMEM, "out of memory");
    else
        onnx_graph_property(g, key, text);
}

/* The labels, and "" for the rows that `check` makes NaN. */
static const char *refuse_labels(struct onnx_graph *g, const char *labels, const char *check)
{
    const char *none = onnx_graph_strings(g, "none", (const char *const[]){""}, 1);
    const char *axes = onnx_graph_ints(g, "axes", (int64_t[]){1}, 1);
    const char *bad = onnx_graph_unary(g, "IsNaN", onnx_graph_binary(g, "Squeeze", check, axes));
    return onnx_graph_add(g, &(struct onnx_node){.op = "Where", ONNX_IN(bad, none, labels)});
}

/* model_combine_class(): int64 [rows]. */
static const char *predicted_class(struct onnx_graph *g, const struct model_combine *c,
                                   size_t classes, const char *p)
{
    const struct onnx_attr attrs[] = {onnx_int("axis", 1), onnx_int("keepdims", 0)};
    if (c->class_weights)
        p = onnx_graph_binary(g, "Mul", onnx_graph_cast(g, p, ONNX_DOUBLE),
                              onnx_graph_doubles(g, "class_weights", c->class_weights, classes));
    if (isnan(c->threshold))
        return onnx_graph_add(
            g, &(struct onnx_node){.op = "ArgMax", ONNX_IN(p), .attrs = attrs, .n_attrs = 2});
    const char *one = onnx_graph_ints(g, "second", (int64_t[]){1}, 1);
    p = onnx_graph_add(
        g, &(struct onnx_node){.op = "Gather", ONNX_IN(p, one), .attrs = attrs, .n_attrs = 1});
    p = onnx_graph_cast(g, onnx_graph_binary(g, "Squeeze", p, one), ONNX_DOUBLE);
    p = onnx_graph_binary(g, "Greater", p, onnx_graph_doubles(g, "threshold", &c->threshold, 1));
    return onnx_graph_cast(g, p, ONNX_INT64);
}

static void add_label(struct onnx_graph *g, const struct model_file *f, const char *p,
                      const char *check)
{
    const struct dataset_info *info = model_file_data(f);
    const char *best = predicted_class(g, model_file_combine(f), info->n_classes, p);
    const char *names =
        onnx_graph_strings(g, "classes", (const char *const *)info->classes, info->n_classes);
    const struct onnx_port port = {.name = "label",
                                   .type = ONNX_STRING,
                                   .dims = (int64_t[]){ONNX_ROWS},
                                   .n_dims = 1,
                                   .note = "the class that is predicted"};
    const char *labels = onnx_graph_binary(g, "Gather", names, best);
    onnx_graph_output(g, &port, check ? refuse_labels(g, labels, check) : labels);
}

void onnx_outputs_add(struct onnx_graph *g, const struct model_file *f, const char *predictions,
                      const char *check)
{
    const struct dataset_info *info = model_file_data(f);
    bool classes = info->task == DATASET_CLASSIFICATION;
    const struct onnx_port port = {.name = classes ? "probabilities" : "predictions",
                                   .type = ONNX_FLOAT,
                                   .dims = (int64_t[]){ONNX_ROWS, (int64_t)info->n_outputs},
                                   .n_dims = 2,
                                   .note = classes ? "a column for each class, as in assay.classes"
                                           : info->task == DATASET_CLUSTERING
                                               ? "cluster, distance"
                                               : "a column for each target"};
    if (check)
        predictions = onnx_graph_binary(g, "Add", predictions, check);
    if (classes) {
        add_label(g, f, predictions, check);
        add_texts(g, "assay.classes", info->classes, info->n_classes);
    }
    if (info->target)
        onnx_graph_property(g, "assay.target", info->target);
    onnx_graph_output(g, &port, predictions);
}

void onnx_logits_add(struct onnx_graph *g, const struct dataset_info *info, size_t context,
                     const char *outputs)
{
    const int64_t dims[] = {ONNX_ROWS, (int64_t)context, (int64_t)info->n_outputs};
    const struct onnx_port port = {.name = "logits",
                                   .type = ONNX_FLOAT,
                                   .dims = dims,
                                   .n_dims = 3,
                                   .note = "of the token after each token"};
    onnx_graph_output(g, &port, outputs);
}
