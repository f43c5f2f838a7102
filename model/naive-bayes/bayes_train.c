/* Two passes over the rows. The first one sums what means, the counts of categories and the idf of
 * words need; the second one what variances and the weights of words need. Sums lie where the model
 * has its values, but for those of numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/naive-bayes/bayes_layout.h"
#include "model/naive-bayes/naive_bayes.h"

struct training {
    const struct bayes_shape *shape;
    const struct bayes_opts *opts;
    double *sizes;  /* [classes] weights of the rows of each class, and that of all rows */
    double *bag;    /* [classes] words of each class */
    double *sums;   /* [inputs][3][classes + 1] of numbers: rows, means, variances */
    double *values; /* of the model */
    size_t words;   /* inputs */
};

struct row {
    const float *x;
    size_t class;
    double weight;
};

static double *sums_of(const struct training *t, size_t input, size_t which)
{
    return t->sums + (3 * input + which) * (t->shape->classes + 1);
}

/* Calls for each input, with where its values are. */
#define EACH_INPUT(t, i, at)                                                                       \
    for (size_t i = 0, at = 0; i < (t)->shape->inputs;                                             \
         at += bayes_input_values((t)->shape->kinds[i], (t)->shape->classes), i++)

/* ---- the first pass ---- */

static void count_row(const struct training *t, const struct row *row)
{
    size_t classes = t->shape->classes, all = classes;
    t->sizes[row->class] += row->weight;
    t->sizes[all] += row->weight;
    EACH_INPUT(t, i, at)
    {
        double x = (double)row->x[i];
        uint32_t kind = t->shape->kinds[i];
        if (isnan(x))
            continue;
        if (kind == BAYES_NUMBER) {
            sums_of(t, i, 0)[row->class] += row->weight;
            sums_of(t, i, 0)[all] += row->weight;
            sums_of(t, i, 1)[row->class] += row->weight * x;
            sums_of(t, i, 1)[all] += row->weight * x;
        } else if (kind == BAYES_WORDS) {
            t->values[at + (x < 0)] += x != 0 ? row->weight : 0;
        } else if (x >= 0 && x < (double)kind) {
            t->values[at + (size_t)x * classes + row->class] += row->weight;
        }
    }
}

/* Sums to means, and rows with a word to its idf. */
static void settle_counts(const struct training *t)
{
    size_t classes = t->shape->classes;
    EACH_INPUT(t, i, at)
    {
        double *n = sums_of(t, i, 0), *mean = sums_of(t, i, 1);
        for (size_t c = 0; c <= classes; c++)
            mean[c] = n[c] > 0 ? mean[c] / n[c] : 0;
        for (size_t part = 0; t->shape->kinds[i] == BAYES_WORDS && part < 2; part++)
            t->values[at + part] = log((1 + t->sizes[classes]) / (1 + t->values[at + part])) + 1;
    }
}

/* ---- the second pass ---- */

static double norm_of_words(const struct training *t, const struct row *row)
{
    double squares = 0;
    EACH_INPUT(t, i, at)
    {
        double x = (double)row->x[i];
        if (t->shape->kinds[i] != BAYES_WORDS || isnan(x))
            continue;
        double term = fabs(x) * t->values[at + (x < 0)];
        squares += term * term;
    }
    return sqrt(squares);
}

static void add_row(const struct training *t, const struct row *row)
{
    size_t classes = t->shape->classes, all = classes;
    double norm = t->words > 0 ? norm_of_words(t, row) : 0;
    EACH_INPUT(t, i, at)
    {
        double x = (double)row->x[i];
        uint32_t kind = t->shape->kinds[i];
        if (isnan(x))
            continue;
        if (kind == BAYES_NUMBER) {
            double own = x - sums_of(t, i, 1)[row->class], of_all = x - sums_of(t, i, 1)[all];
            sums_of(t, i, 2)[row->class] += row->weight * own * own;
            sums_of(t, i, 2)[all] += row->weight * of_all * of_all;
        } else if (kind == BAYES_WORDS && x != 0) {
            size_t part = x < 0;
            double term = row->weight * fabs(x) * t->values[at + part] / norm;
            t->values[at + 2 + part * classes + row->class] += term;
            t->bag[row->class] += term;
        }
    }
}

/* ---- the end ---- */

/* A class that has no value of the column takes that of all rows. Where these have no variance, or
 * one that rounding makes, all classes get one and the same: it says nothing. */
static void settle_number(const struct training *t, size_t input, double *ret)
{
    size_t classes = t->shape->classes;
    const double *n = sums_of(t, input, 0), *mean = sums_of(t, input, 1),
                 *square = sums_of(t, input, 2);
    double middle = mean[classes], variance = n[classes] > 0 ? square[classes] / n[classes] : 0;
    bool flat = !(variance > 1e-14 * middle * middle) || !(variance > 1e-200);
    for (size_t c = 0; c < classes; c++) {
        bool known = !flat && n[c] > 0;
        double own = known ? square[c] / n[c] : variance;
        ret[c] = known ? mean[c] : middle;
        ret[classes + c] = flat ? 1 : own + t->opts->spread * variance;
    }
}

static void settle_category(const struct training *t, uint32_t values, double *ret)
{
    size_t classes = t->shape->classes;
    double count = t->opts->count;
    for (size_t c = 0; c < classes; c++) {
        double size = count * (double)values;
        for (size_t v = 0; v < values; v++)
            size += ret[v * classes + c];
        for (size_t v = 0; v < values; v++)
            ret[v * classes + c] = log((ret[v * classes + c] + count) / size);
    }
}

/* From sums of words to their weights. */
static void settle_words(const struct training *t, double *ret)
{
    size_t classes = t->shape->classes;
    double all = 0, count = t->opts->count, counts = count * 2 * (double)t->words;
    for (size_t c = 0; c < classes; c++)
        all += t->bag[c];
    for (size_t part = 0; part < 2; part++) {
        double *of = ret + 2 + part * classes, both = 0;
        for (size_t c = 0; c < classes; c++)
            both += of[c];
        for (size_t c = 0; c < classes; c++)
            of[c] =
                t->opts->complement
                    ? -log((fmax(both - of[c], 0) + count) / (fmax(all - t->bag[c], 0) + counts))
                    : log((of[c] + count) / (t->bag[c] + counts));
    }
}

static void settle(const struct training *t)
{
    EACH_INPUT(t, i, at)
    {
        uint32_t kind = t->shape->kinds[i];
        if (kind == BAYES_NUMBER)
            settle_number(t, i, t->values + at);
        else if (kind == BAYES_WORDS)
            settle_words(t, t->values + at);
        else
            settle_category(t, kind, t->values + at);
    }
}

/* ---- the whole ---- */

static void each_row(const struct training *t, const struct bayes_rows *rows,
                     void (*run)(const struct training *t, const struct row *row))
{
    for (size_t r = 0; r < rows->n; r++) {
        const struct row row = {.x = rows->x + r * t->shape->inputs,
                                .class = (size_t)rows->labels[r],
                                .weight = rows->weights ? (double)rows->weights[r] : 1};
        if (row.weight > 0)
            run(t, &row);
    }
}

static void write_header(const struct training *t, char *bytes)
{
    size_t classes = t->shape->classes;
    const uint32_t counts[4] = {(uint32_t)t->shape->inputs, (uint32_t)classes, 0, 0};
    double *shares = (void *)(bytes + bayes_header(t->shape->inputs));
    memcpy(bytes, BAYES_MAGIC, 8);
    memcpy(bytes + 8, counts, sizeof counts);
    memcpy(bytes + BAYES_COUNTS_END, t->shape->kinds, t->shape->inputs * sizeof(uint32_t));
    for (size_t c = 0; c < classes; c++)
        shares[c] = t->sizes[c] > 0 ? log(t->sizes[c] / t->sizes[classes]) : BAYES_NEVER;
}

static as_status learn(struct training *t, const struct bayes_rows *rows, char *bytes,
                       struct as_err *err)
{
    size_t classes = t->shape->classes;
    t->values = (double *)(void *)(bytes + bayes_header(t->shape->inputs)) + classes;
    for (size_t i = 0; i < t->shape->inputs; i++)
        t->words += t->shape->kinds[i] == BAYES_WORDS;
    each_row(t, rows, count_row);
    if (!(t->sizes[classes] > 0))
        return as_fail(err, AS_E_INVAL, "no training row has a weight above 0");
    settle_counts(t);
    each_row(t, rows, add_row);
    settle(t);
    write_header(t, bytes);
    return AS_OK;
}

as_status bayes_train(const struct bayes_shape *shape, const struct bayes_opts *opts,
                      const struct bayes_rows *rows, char **ret, size_t *ret_len,
                      struct as_err *err)
{
    size_t len = bayes_bytes(shape), classes = shape->classes;
    if (len > BAYES_MAX_BYTES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "naive Bayes of %zu inputs and %zu classes has more than %zu bytes",
                       shape->inputs, classes, BAYES_MAX_BYTES);
    AS_AUTO(as_freep) double *sizes = as_calloc(2 * classes + 1, sizeof *sizes);
    AS_AUTO(as_freep) double *sums = as_calloc(3 * shape->inputs * (classes + 1), sizeof *sums);
    AS_AUTO(as_freep) char *bytes = as_calloc(len, 1);
    if (!sizes || !sums || !bytes)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu bytes of naive Bayes", len);
    struct training t = {
        .shape = shape, .opts = opts, .sizes = sizes, .bag = sizes + classes + 1, .sums = sums};
    as_status st = learn(&t, rows, bytes, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(bytes);
    *ret_len = len;
    return AS_OK;
}
