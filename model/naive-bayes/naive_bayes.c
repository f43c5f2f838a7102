/* The stored form: where values lie, what is checked, and how rows are predicted. bayes_train.c
 * makes it. */
#include "model/naive-bayes/naive_bayes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/naive-bayes/bayes_layout.h"

#define LOG_2PI 1.8378770664093454835606594728112

size_t bayes_input_values(uint32_t kind, size_t classes)
{
    if (kind == BAYES_NUMBER)
        return 2 * classes;
    return kind == BAYES_WORDS ? 2 + 2 * classes : kind * classes;
}

size_t bayes_header(size_t inputs)
{
    return (BAYES_COUNTS_END + inputs * sizeof(uint32_t) + 7) / 8 * 8;
}

size_t bayes_bytes(const struct bayes_shape *shape)
{
    size_t values = shape->classes, bytes;
    for (size_t i = 0; i < shape->inputs; i++)
        if (__builtin_add_overflow(values, bayes_input_values(shape->kinds[i], shape->classes),
                                   &values))
            return SIZE_MAX;
    if (__builtin_mul_overflow(values, sizeof(double), &bytes) ||
        __builtin_add_overflow(bytes, bayes_header(shape->inputs), &bytes))
        return SIZE_MAX;
    return bytes;
}

/* ---- reading ---- */

void bayes_done(struct bayes *m)
{
    free((void *)(uintptr_t)m->shape.kinds);
    free(m->at);
    free(m->copy);
    *m = (struct bayes){0};
}

static as_status check_header(const char *bytes, size_t len, const struct bayes_shape *shape,
                              struct as_err *err)
{
    uint32_t n[4];
    size_t expected = bayes_bytes(shape);
    if (len < BAYES_COUNTS_END || memcmp(bytes, BAYES_MAGIC, 8) != 0)
        return as_fail(err, AS_E_INVAL, "no naive Bayes: it begins with '" BAYES_MAGIC "'");
    memcpy(n, bytes + 8, sizeof n);
    if (n[0] != shape->inputs || n[1] != shape->classes || n[2] || n[3])
        return as_fail(err, AS_E_INVAL,
                       "naive Bayes has %u inputs and %u classes, expected %zu and %zu", n[0], n[1],
                       shape->inputs, shape->classes);
    if (len != expected || len > BAYES_MAX_BYTES)
        return as_fail(err, AS_E_INVAL, "naive Bayes has %zu bytes, expected %zu", len, expected);
    if (memcmp(bytes + BAYES_COUNTS_END, shape->kinds, shape->inputs * sizeof(uint32_t)) != 0)
        return as_fail(err, AS_E_INVAL, "naive Bayes has inputs of other kinds than the data set");
    return AS_OK;
}

static as_status keep_shape(const struct bayes_shape *shape, struct bayes *m, struct as_err *err)
{
    uint32_t *kinds = as_calloc(shape->inputs + 1, sizeof *kinds);
    m->shape = (struct bayes_shape){shape->inputs, shape->classes, kinds};
    m->at = as_calloc(shape->inputs + 1, sizeof *m->at);
    if (!kinds || !m->at)
        return as_fail_nomem(err);
    for (size_t i = 0, at = 0; i < shape->inputs; i++) {
        kinds[i] = shape->kinds[i];
        m->at[i] = at;
        m->words += kinds[i] == BAYES_WORDS;
        at += bayes_input_values(kinds[i], shape->classes);
    }
    return AS_OK;
}

/* Views of the bytes, or of a copy. */
static as_status set_values(const char *bytes, size_t len, struct bayes *m, struct as_err *err)
{
    size_t header = bayes_header(m->shape.inputs);
    const void *from = bytes + header;
    if ((uintptr_t)from % sizeof(double) != 0) {
        m->copy = as_calloc(len - header, 1);
        if (!m->copy)
            return as_fail(err, AS_E_NOMEM, "out of memory for %zu bytes of naive Bayes", len);
        memcpy(m->copy, from, len - header);
        from = m->copy;
    }
    m->shares = from;
    m->values = m->shares + m->shape.classes;
    return AS_OK;
}

static bool all_finite(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

static bool all_positive(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(v[i] > 0))
            return false;
    return true;
}

static as_status check_values(const struct bayes *m, struct as_err *err)
{
    size_t classes = m->shape.classes;
    if (!all_finite(m->shares, classes))
        return as_fail(err, AS_E_INVAL, "naive Bayes has a share that is no finite number");
    for (size_t i = 0; i < m->shape.inputs; i++) {
        uint32_t kind = m->shape.kinds[i];
        const double *v = m->values + m->at[i];
        bool good = all_finite(v, bayes_input_values(kind, classes));
        if (kind == BAYES_NUMBER)
            good = good && all_positive(v + classes, classes);
        else if (kind == BAYES_WORDS)
            good = good && all_positive(v, 2);
        if (!good)
            return as_fail(err, AS_E_INVAL,
                           "naive Bayes: input %zu has a number that is none, or a variance or an "
                           "idf that is not above 0",
                           i);
    }
    return AS_OK;
}

as_status bayes_read(const void *bytes, size_t len, const struct bayes_shape *shape,
                     struct bayes *ret, struct as_err *err)
{
    struct bayes m = {0};
    as_status st = check_header(bytes, len, shape, err);
    if (st == AS_OK)
        st = keep_shape(shape, &m, err);
    if (st == AS_OK)
        st = set_values(bytes, len, &m, err);
    if (st == AS_OK)
        st = check_values(&m, err);
    if (st != AS_OK)
        bayes_done(&m);
    else
        *ret = m;
    return st;
}

/* ---- predicting ---- */

static void add_number(const double *v, size_t classes, double x, double *scores)
{
    for (size_t c = 0; c < classes; c++) {
        double d = x - v[c];
        scores[c] -= (LOG_2PI + log(v[classes + c]) + d * d / v[classes + c]) / 2;
    }
}

/* The terms of words before the row's norm is known, into `sums`; returns the square. */
static double add_words(const double *v, size_t classes, double x, double *sums)
{
    size_t part = x < 0;
    double t = fabs(x) * v[part];
    const double *weights = v + 2 + part * classes;
    for (size_t c = 0; c < classes; c++)
        sums[c] += t * weights[c];
    return t * t;
}

static void score_row(const struct bayes *m, const float *x, double *scores, double *sums)
{
    size_t classes = m->shape.classes;
    double squares = 0;
    memcpy(scores, m->shares, classes * sizeof *scores);
    memset(sums, 0, classes * sizeof *sums);
    for (size_t i = 0; i < m->shape.inputs; i++) {
        uint32_t kind = m->shape.kinds[i];
        const double *v = m->values + m->at[i];
        if (isnan(x[i]))
            continue;
        if (kind == BAYES_NUMBER)
            add_number(v, classes, (double)x[i], scores);
        else if (kind == BAYES_WORDS)
            squares += x[i] != 0 ? add_words(v, classes, (double)x[i], sums) : 0;
        else if (x[i] >= 0 && x[i] < (float)kind)
            for (size_t c = 0; c < classes; c++)
                scores[c] += v[(size_t)x[i] * classes + c];
    }
    for (size_t c = 0; squares > 0 && c < classes; c++)
        scores[c] += sums[c] / sqrt(squares);
}

static void softmax(const double *scores, size_t n, float *ret)
{
    double most = scores[0], sum = 0;
    for (size_t c = 1; c < n; c++)
        most = scores[c] > most ? scores[c] : most;
    for (size_t c = 0; c < n; c++)
        sum += exp(scores[c] - most);
    for (size_t c = 0; c < n; c++)
        ret[c] = (float)(exp(scores[c] - most) / sum);
}

as_status bayes_predict(const struct bayes *m, const float *x, size_t rows, float *ret,
                        struct as_err *err)
{
    size_t classes = m->shape.classes;
    AS_AUTO(as_freep) double *scores = as_calloc(2 * classes, sizeof *scores);
    if (!scores)
        return as_fail_nomem(err);
    for (size_t r = 0; r < rows; r++) {
        score_row(m, x + r * m->shape.inputs, scores, scores + classes);
        softmax(scores, classes, ret + r * classes);
    }
    return AS_OK;
}
