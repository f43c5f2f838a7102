/* What an ensemble is worth on rows that the sweep never saw. A helper of ensemble.py:
 *
 *   ensemble record CSV TARGET [TASK]
 *     prints the record of a data set, for JOB.json of assay-train
 *   ensemble compare METRIC ROWS SPLITS SIZE TARGETS.npy PREDICTIONS.npy...
 *     For each of SPLITS random splits of the predicted rows, ROWS of them are a sweep's held-out
 *     rows: they choose the best single model and the ensembles. The others are new rows, which
 *     measure them. Prints a line of JSON for each split, with values on the new rows:
 *     {single, before, ensemble, recommended: those values, "chosen", "within_noise"}
 *
 * "before" is the rule until 2026-11-22: one half of the rows chooses, by log loss (numbers: by the
 * metric), members one after the other, and the best prefix wins. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "search/ensemble/ensemble.h"

static struct as_err err;

static void check(as_status st)
{
    if (st == AS_OK)
        return;
    (void)fprintf(stderr, "ensemble: %s\n", err.msg);
    exit(1);
}

static void *get(size_t n, size_t size)
{
    void *p = as_calloc(n, size);
    if (!p)
        check(as_fail_nomem(&err));
    return p;
}

/* ---- record ---- */

static int record(int argc, char **argv)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    const struct dataset_paths paths = {.table = argv[2]};
    const struct dataset_options options = {0};
    dataset_task task = DATASET_TASK_AUTO;
    if (argc > 4)
        check(dataset_task_parse(argv[4], &task, &err));
    check(dataset_inspect(&paths, DATASET_CSV, argv[3], task, &options, &info, &err));
    JSON_AUTO j = dataset_info_to_json(&info);
    AS_AUTO(as_freep) char *text = j ? json_format(j) : NULL;
    return text && puts(text) >= 0 ? 0 : 1;
}

/* ---- compare ---- */

/* Rows of a problem, and which of them choose (the first `chosen` of `order`). */
struct problem {
    score_metric metric;
    size_t rows, outputs, models, chosen, size;
    double *targets; /* [rows, outputs or 1] */
    double **p;      /* [models][rows, outputs] */
    size_t *order;   /* [rows] */
};

static double *read_array(const char *path, size_t *ret_rows, size_t *ret_columns)
{
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    check(npy_open(path, &npy, &err));
    const struct npy_header *h = npy_header_of(npy);
    double *v = get(h->n_values, sizeof *v);
    check(npy_read(npy, h->n_values, v, &err));
    *ret_rows = h->shape[0];
    *ret_columns = h->n_dims == 2 ? h->shape[1] : 1;
    return v;
}

static void shuffle(struct problem *b, uint64_t split)
{
    struct rng r;
    rng_init(&r, split, 1);
    for (size_t i = 0; i < b->rows; i++)
        b->order[i] = i;
    for (size_t i = b->rows; i > 1; i--) {
        size_t k = (size_t)rng_below(&r, i), moved = b->order[i - 1];
        b->order[i - 1] = b->order[k];
        b->order[k] = moved;
    }
}

/* The truth of n rows of the order from `first` on. Owned by the caller. */
static struct score_truth truth_of(const struct problem *b, size_t first, size_t n)
{
    bool classes = score_is_of_classes(b->metric);
    int64_t *labels = get(n, sizeof *labels);
    float *numbers = get(n * b->outputs, sizeof *numbers);
    for (size_t i = 0; i < n; i++) {
        size_t row = b->order[first + i];
        if (classes)
            labels[i] = (int64_t)b->targets[row];
        for (size_t c = 0; !classes && c < b->outputs; c++)
            numbers[i * b->outputs + c] = (float)b->targets[row * b->outputs + c];
    }
    return (struct score_truth){n, b->outputs, classes ? labels : NULL, numbers};
}

static void truth_done(struct score_truth *t)
{
    free((int64_t *)t->classes);
    free((float *)t->targets);
}

static float *rows_of(const struct problem *b, size_t model, size_t first, size_t n)
{
    float *v = get(n * b->outputs, sizeof *v);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < b->outputs; c++)
            v[i * b->outputs + c] = (float)b->p[model][b->order[first + i] * b->outputs + c];
    return v;
}

/* The metric of a weighted mean of the models on n rows of the order from `first` on. */
static double measure(const struct problem *b, score_metric m, const double *weights, size_t first,
                      size_t n)
{
    AS_AUTO(truth_done) struct score_truth truth = truth_of(b, first, n);
    AS_AUTO(as_freep) double *mean = get(n * b->outputs, sizeof *mean);
    double v = 0;
    for (size_t k = 0; k < b->models; k++)
        for (size_t i = 0; weights[k] > 0 && i < n; i++)
            for (size_t c = 0; c < b->outputs; c++)
                mean[i * b->outputs + c] +=
                    weights[k] * b->p[k][b->order[first + i] * b->outputs + c];
    check(score_compute(m, &truth, NULL, n, mean, 1, &v, NULL, &err));
    return v;
}

static void select_before(const struct problem *b, double *weights)
{
    score_metric m = score_is_of_classes(b->metric) ? SCORE_LOG_LOSS : b->metric;
    size_t half = b->chosen - b->chosen / 2, best_n = 0;
    AS_AUTO(as_freep) size_t *picks = get(b->size, sizeof *picks);
    AS_AUTO(as_freep) double *w = get(b->models, sizeof *w);
    double best = INFINITY;
    for (size_t n = 0; n < b->size; n++) {
        double least = INFINITY;
        for (size_t k = 0; k < b->models; k++) {
            for (size_t j = 0; j < b->models; j++)
                w[j] = weights[j] / (double)(n + 1) + (j == k ? 1 / (double)(n + 1) : 0);
            double loss = measure(b, m, w, 0, half);
            if (loss < least) {
                least = loss;
                picks[n] = k;
            }
        }
        weights[picks[n]] += 1; /* counts until the end */
        best_n = least < best ? n + 1 : best_n;
        best = least < best ? least : best;
    }
    memset(weights, 0, b->models * sizeof *weights);
    for (size_t n = 0; n < best_n; n++)
        weights[picks[n]] += 1 / (double)best_n;
}

/* The value on the new rows of another method; ENSEMBLE_METHODS: stacking without negative ones. */
static void print_method(const struct problem *b, const struct ensemble_input *chosen, int method)
{
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    struct ensemble_input in = *chosen, fresh = *chosen;
    bool non_negative = method == ENSEMBLE_METHODS;
    size_t n = b->rows - b->chosen;
    in.method = non_negative ? ENSEMBLE_STACKING : (ensemble_method)method;
    in.non_negative = non_negative;
    check(ensemble_select(&in, &e, &err));
    AS_AUTO(truth_done) struct score_truth truth = truth_of(b, b->chosen, n);
    AS_AUTO(as_freep) float **predictions = get(b->models, sizeof *predictions);
    AS_AUTO(as_freep) double *p = get(n * b->outputs, sizeof *p);
    for (size_t k = 0; k < b->models; k++)
        predictions[k] = rows_of(b, k, b->chosen, n);
    fresh.truth = truth;
    fresh.predictions = (const float *const *)predictions;
    double v = 0;
    ensemble_predict(e, &fresh, NULL, n, p);
    check(score_compute(b->metric, &truth, NULL, n, p, 1, &v, NULL, &err));
    (void)printf("\"%s\":%.9g,\"%s_gain\":%.9g,",
                 non_negative ? "non_negative" : ensemble_method_names[method], v,
                 non_negative ? "non_negative" : ensemble_method_names[method], e->gain);
    for (size_t k = 0; k < b->models; k++)
        free(predictions[k]);
}

static void compare_split(struct problem *b, uint64_t split)
{
    shuffle(b, split);
    AS_AUTO(truth_done) struct score_truth truth = truth_of(b, 0, b->chosen);
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    AS_AUTO(as_freep) float **predictions = get(b->models, sizeof *predictions);
    AS_AUTO(as_freep) double *single = get(b->models, sizeof *single);
    AS_AUTO(as_freep) double *before = get(b->models, sizeof *before);
    for (size_t k = 0; k < b->models; k++)
        predictions[k] = rows_of(b, k, 0, b->chosen);
    const struct ensemble_input in = {.candidates = b->models,
                                      .truth = truth,
                                      .predictions = (const float *const *)predictions,
                                      .metric = b->metric,
                                      .size = b->size,
                                      .seed = split};
    check(ensemble_select(&in, &e, &err));
    size_t n = b->rows - b->chosen;
    (void)printf("{");
    for (int m = 1; m < ENSEMBLE_METHODS + 1; m++)
        print_method(b, &in, m);
    single[e->best_single] = 1;
    select_before(b, before);
    double one = measure(b, b->metric, single, b->chosen, n);
    double now = measure(b, b->metric, e->weights, b->chosen, n);
    (void)printf("\"single\":%.9g,\"before\":%.9g,\"ensemble\":%.9g,\"recommended\":%.9g,"
                 "\"chosen\":\"%s\",\"within_noise\":%s,\"estimate\":%.9g,\"gain\":%.9g,"
                 "\"low\":%.9g,\"high\":%.9g}\n",
                 one, measure(b, b->metric, before, b->chosen, n), now, e->recommended ? now : one,
                 e->recommended ? "ensemble" : "single", e->within_noise ? "true" : "false",
                 e->value, e->gain, e->gain_low, e->gain_high);
    for (size_t k = 0; k < b->models; k++)
        free(predictions[k]);
}

static score_metric metric_of(const char *name)
{
    for (int m = 0; m < SCORE_METRICS; m++)
        if (as_streq(score_format((score_metric)m), name))
            return (score_metric)m;
    check(as_fail(&err, AS_E_INVAL, "there is no metric '%.40s'", name));
    return SCORE_ERROR;
}

static size_t number_of(const char *text)
{
    int64_t v = 0;
    check(as_parse_i64(text, &v, &err));
    if (v < 1)
        check(as_fail(&err, AS_E_INVAL, "found %s, expected 1 or more", text));
    return (size_t)v;
}

static int compare(int argc, char **argv)
{
    size_t columns = 0, rows = 0;
    struct problem b = {.metric = metric_of(argv[2]),
                        .chosen = number_of(argv[3]),
                        .size = number_of(argv[5]),
                        .models = (size_t)argc - 7};
    b.targets = read_array(argv[6], &b.rows, &columns);
    b.p = get(b.models, sizeof *b.p);
    b.order = get(b.rows, sizeof *b.order);
    for (size_t k = 0; k < b.models; k++) {
        b.p[k] = read_array(argv[7 + k], &rows, &b.outputs);
        if (rows != b.rows || b.chosen >= rows)
            check(as_fail(&err, AS_E_INVAL, "%s has %zu rows, expected %zu, of which %zu choose",
                          argv[7 + k], rows, b.rows, b.chosen));
    }
    for (size_t split = 0, n = number_of(argv[4]); split < n; split++)
        compare_split(&b, split);
    for (size_t k = 0; k < b.models; k++)
        free(b.p[k]);
    free(b.p);
    free(b.targets);
    free(b.order);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 4 && as_streq(argv[1], "record"))
        return record(argc, argv);
    if (argc >= 9 && as_streq(argv[1], "compare"))
        return compare(argc, argv);
    (void)fprintf(stderr, "usage: ensemble record CSV TARGET [TASK]\n"
                          "       ensemble compare METRIC ROWS SPLITS SIZE TARGETS.npy "
                          "PREDICTIONS.npy PREDICTIONS.npy...\n"
                          "bench/ensemble.py calls it\n");
    return 64;
}
