/* Naive Bayes: against scikit-learn's definitions by hand, against a plain reference that computes
 * each term from the rows, and hostile bytes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/naive-bayes/naive_bayes.h"
#include "tests/support/check_main.h"

static struct as_err err;

static void model_of(const struct bayes_shape *shape, const struct bayes_opts *opts,
                     const struct bayes_rows *rows, char **bytes, size_t *len, struct bayes *m)
{
    ck_ok(bayes_train(shape, opts, rows, bytes, len, &err), err);
    ck_assert_uint_eq(*len, bayes_bytes(shape));
    ck_ok(bayes_read(*bytes, *len, shape, m, &err), err);
}

/* ---- by hand ---- */

static double normal(double x, double m, double v)
{
    return exp(-(x - m) * (x - m) / (2 * v)) / sqrt(2 * M_PI * v);
}

/* GaussianNB with var_smoothing s: X = [[0], [2], [4], [6]], y = [0, 0, 0, 1] has the means 2 and
 * 6, the variances 8/3 and 0, each plus s times 5, the variance of all; shares 3/4 and 1/4.
 * CategoricalNB(alpha=1, min_categories=3): X = [[0], [0], [1], [1]] has the shares 3/6, 2/6, 1/6
 * of the values in class 0 and 1/4, 2/4, 1/4 in class 1. */
START_TEST(by_hand)
{
    const uint32_t kinds[] = {BAYES_NUMBER, 3};
    const float x[] = {0, 0, 2, 0, 4, 1, 6, 1}, queries[] = {5, 0, NAN, 2, 3, NAN, NAN, 7};
    const int32_t labels[] = {0, 0, 0, 1};
    const struct bayes_shape shape = {2, 2, kinds};
    const struct bayes_rows rows = {.x = x, .n = 4, .labels = labels};
    const struct bayes_opts opts = {.count = 1, .spread = 0.1};
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(bayes_done) struct bayes m = {0};
    size_t len = 0;
    float ret[8];
    model_of(&shape, &opts, &rows, &bytes, &len, &m);
    ck_ok(bayes_predict(&m, queries, 4, ret, &err), err);
    double v0 = 8.0 / 3 + 0.5, v1 = 0.5;
    const double a[] = {0.75 * normal(5, 2, v0) * 3 / 6, 0.75 * 1 / 6, 0.75 * normal(3, 2, v0),
                        0.75},
                 b[] = {0.25 * normal(5, 6, v1) * 1 / 4, 0.25 * 1 / 4, 0.25 * normal(3, 6, v1),
                        0.25};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_double_eq_tol((double)ret[2 * i], a[i] / (a[i] + b[i]), 1e-7);
        ck_assert_double_eq_tol((double)ret[2 * i + 1], b[i] / (a[i] + b[i]), 1e-7);
    }
}
END_TEST

/* MultinomialNB and ComplementNB of scikit-learn on TfidfTransformer's rows, and the shares of the
 * classes beside them: words a (+), b (-), c (+) of three texts "a", "b", "a c" of the classes 0,
 * 1, 1. idf: a log(4/3) + 1, b and c log(4/2) + 1. */
START_TEST(words_by_hand)
{
    const uint32_t kinds[] = {BAYES_WORDS, BAYES_WORDS};
    const float r = 0.70710678F, x[] = {1, 0, -1, 0, r, r}, query[] = {r, r, 0, 0};
    const int32_t labels[] = {0, 1, 1};
    const struct bayes_shape shape = {2, 2, kinds};
    const struct bayes_rows rows = {.x = x, .n = 3, .labels = labels};
    double often = log(4.0 / 3) + 1, seldom = log(2) + 1, norm = hypot(often, seldom);
    double a = often / norm, c = seldom / norm; /* of the text "a c" */
    for (int complement = 0; complement < 2; complement++) {
        const struct bayes_opts opts = {.count = 0.5, .spread = 1, .complement = complement == 1};
        AS_AUTO(as_freep) char *bytes = NULL;
        AS_AUTO(bayes_done) struct bayes m = {0};
        size_t len = 0;
        float ret[4];
        model_of(&shape, &opts, &rows, &bytes, &len, &m);
        ck_ok(bayes_predict(&m, query, 2, ret, &err), err);
        /* four words: each input has two */
        double all[2] = {1 + 4 * 0.5, 1 + a + c + 4 * 0.5};
        double of_a[2] = {1.5, a + 0.5}, of_c[2] = {0.5, c + 0.5}, score[2];
        for (size_t k = 0; k < 2; k++) {
            size_t by = complement ? 1 - k : k; /* of two classes the other one is all others */
            double w = a * log(of_a[by] / all[by]) + c * log(of_c[by] / all[by]);
            score[k] = log(k ? 2.0 / 3 : 1.0 / 3) + (complement ? -w : w);
        }
        ck_assert_double_eq_tol((double)ret[0], 1 / (1 + exp(score[1] - score[0])), 1e-7);
        ck_assert_double_eq_tol((double)ret[2], 1.0 / 3, 1e-7); /* a text without words */
    }
}
END_TEST

/* ---- the plain reference ---- */

#define ROWS ((size_t)97)
#define INPUTS ((size_t)9)
#define CLASSES ((size_t)3)

static const uint32_t mixed[INPUTS] = {
    BAYES_NUMBER, BAYES_WORDS, BAYES_WORDS, BAYES_NUMBER, 4, BAYES_WORDS, 1, BAYES_NUMBER, 3};

struct table {
    float x[ROWS * INPUTS], weights[ROWS];
    int32_t labels[ROWS];
};

/* Numbers of several sizes, some missing; words, some of which are not there. */
static void fill(struct table *t, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, 4);
    for (size_t r = 0; r < ROWS; r++) {
        t->labels[r] = (int32_t)rng_below(&rng, CLASSES);
        t->weights[r] = (float)rng_below(&rng, 3) / 2; /* some rows count nothing */
        for (size_t i = 0; i < INPUTS; i++) {
            float *x = &t->x[r * INPUTS + i];
            bool missing = rng_below(&rng, 5) == 0;
            if (mixed[i] == BAYES_NUMBER)
                *x = missing ? NAN : (float)(rng_normal(&rng) * (1 + 100.0 * (double)i)) + 1000;
            else if (mixed[i] == BAYES_WORDS)
                *x = missing ? 0 : (float)rng_normal(&rng);
            else
                *x = missing ? NAN : (float)rng_below(&rng, mixed[i]);
        }
        t->x[r * INPUTS + 7] = 3; /* it says nothing */
    }
}

struct reference {
    const struct table *t;
    const struct bayes_opts *opts;
    bool weighted;
};

static double weight(const struct reference *p, size_t r)
{
    return p->weighted ? (double)p->t->weights[r] : 1;
}

static double cell(const struct reference *p, size_t r, size_t i)
{
    return (double)p->t->x[r * INPUTS + i];
}

/* Sum over the rows of a class (-1: of all) of weight * x^power. */
static double moment(const struct reference *p, size_t i, int class, int power, double about)
{
    double sum = 0;
    for (size_t r = 0; r < ROWS; r++)
        if ((class < 0 || p->t->labels[r] == class) && !isnan(cell(p, r, i)))
            sum += weight(p, r) * pow(cell(p, r, i) - about, power);
    return sum;
}

static double term_of_number(const struct reference *p, size_t i, int class, double x)
{
    double mean = moment(p, i, class, 1, 0) / moment(p, i, class, 0, 0),
           all = moment(p, i, -1, 1, 0) / moment(p, i, -1, 0, 0);
    double v = moment(p, i, class, 2, mean) / moment(p, i, class, 0, 0) +
               p->opts->spread * moment(p, i, -1, 2, all) / moment(p, i, -1, 0, 0);
    return log(normal(x, mean, v));
}

static double term_of_category(const struct reference *p, size_t i, int class, double x)
{
    double with = 0, all = 0;
    for (size_t r = 0; r < ROWS; r++)
        if (p->t->labels[r] == class && !isnan(cell(p, r, i))) {
            all += weight(p, r);
            with += cell(p, r, i) == x ? weight(p, r) : 0;
        }
    return log((with + p->opts->count) / (all + p->opts->count * mixed[i]));
}

static double word(double x, bool negative)
{
    return negative ? fmax(-x, 0) : fmax(x, 0);
}

static double idf(const struct reference *p, size_t i, bool negative)
{
    double with = 0, all = 0;
    for (size_t r = 0; r < ROWS; r++) {
        all += weight(p, r);
        with += word(cell(p, r, i), negative) > 0 ? weight(p, r) : 0;
    }
    return log((1 + all) / (1 + with)) + 1;
}

/* The words of a row, [2 * INPUTS], as long as 1. */
static void words_of(const struct reference *p, const float *x, double *ret)
{
    double squares = 0;
    for (size_t k = 0; k < 2 * INPUTS; k++) {
        bool is_words = mixed[k / 2] == BAYES_WORDS;
        ret[k] = is_words ? word((double)x[k / 2], k % 2) * idf(p, k / 2, k % 2) : 0;
        squares += ret[k] * ret[k];
    }
    for (size_t k = 0; k < 2 * INPUTS; k++)
        ret[k] /= squares > 0 ? sqrt(squares) : 1;
}

/* weights [2 * INPUTS] of the words for a class. */
static void weights_of_words(const struct reference *p, int class, double *ret)
{
    double sums[2 * INPUTS] = {0}, all = 0, counts = p->opts->count;
    for (size_t r = 0; r < ROWS; r++) {
        double words[2 * INPUTS];
        if ((p->t->labels[r] == class) == p->opts->complement)
            continue;
        words_of(p, p->t->x + r * INPUTS, words);
        for (size_t k = 0; k < 2 * INPUTS; k++)
            sums[k] += weight(p, r) * words[k];
    }
    for (size_t k = 0; k < 2 * INPUTS; k++)
        all += sums[k];
    for (size_t k = 0; k < 2 * INPUTS; k++)
        ret[k] = (p->opts->complement ? -1 : 1) *
                 log((sums[k] + counts) / (all + counts * 2 * 3 /* inputs that are words */));
}

static void plain(const struct reference *p, const float *x, double weights[CLASSES][2 * INPUTS],
                  double ret[CLASSES])
{
    double words[2 * INPUTS], sizes[CLASSES] = {0}, sum = 0;
    words_of(p, x, words);
    for (size_t r = 0; r < ROWS; r++)
        sizes[p->t->labels[r]] += weight(p, r);
    for (size_t c = 0; c < CLASSES; c++) {
        double score = log(sizes[c] / (sizes[0] + sizes[1] + sizes[2]));
        for (size_t i = 0; i < INPUTS; i++) {
            if (isnan(x[i]) || i == 7 || mixed[i] == BAYES_WORDS)
                continue;
            score += mixed[i] == BAYES_NUMBER ? term_of_number(p, i, (int)c, (double)x[i])
                                              : term_of_category(p, i, (int)c, (double)x[i]);
        }
        for (size_t k = 0; k < 2 * INPUTS; k++)
            score += words[k] * weights[c][k];
        sum += ret[c] = exp(score);
    }
    for (size_t c = 0; c < CLASSES; c++)
        ret[c] /= sum;
}

START_TEST(against_a_plain_reference)
{
    static struct table t, others;
    bool weighted = _i & 1;
    const struct bayes_opts opts = {.count = 0.7, .spread = 0.01, .complement = (_i & 2) != 0};
    const struct bayes_shape shape = {INPUTS, CLASSES, mixed};
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(bayes_done) struct bayes m = {0};
    size_t len = 0;
    float ret[ROWS * CLASSES], alone[CLASSES];
    fill(&t, 1);
    fill(&others, 2);
    const struct bayes_rows rows = {t.x, ROWS, t.labels, weighted ? t.weights : NULL};
    const struct reference p = {&t, &opts, weighted};
    double weights[CLASSES][2 * INPUTS];
    model_of(&shape, &opts, &rows, &bytes, &len, &m);
    for (size_t c = 0; c < CLASSES; c++)
        weights_of_words(&p, (int)c, weights[c]);
    ck_ok(bayes_predict(&m, others.x, ROWS, ret, &err), err);
    for (size_t r = 0; r < 20; r++) {
        double expected[CLASSES];
        plain(&p, others.x + r * INPUTS, weights, expected);
        for (size_t c = 0; c < CLASSES; c++)
            ck_assert_double_eq_tol((double)ret[r * CLASSES + c], expected[c], 1e-6);
        ck_ok(bayes_predict(&m, others.x + r * INPUTS, 1, alone, &err), err);
        ck_assert_mem_eq(alone, ret + r * CLASSES, sizeof alone);
    }
}
END_TEST

/* ---- what rows may lack ---- */

/* A class without rows is never predicted; one without a value of a column takes that of all. */
START_TEST(classes_and_columns_without_rows)
{
    const uint32_t kinds[] = {BAYES_NUMBER, BAYES_NUMBER};
    const float x[] = {1, 5, 2, 6, NAN, 7, NAN, 8}, query[] = {1000, 6.5F, NAN, NAN};
    const int32_t labels[] = {0, 0, 1, 1};
    const struct bayes_shape shape = {2, 3, kinds};
    const struct bayes_rows rows = {.x = x, .n = 4, .labels = labels};
    const struct bayes_opts opts = {.count = 1, .spread = 1e-3};
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(bayes_done) struct bayes m = {0};
    size_t len = 0;
    float ret[6];
    model_of(&shape, &opts, &rows, &bytes, &len, &m);
    ck_ok(bayes_predict(&m, query, 2, ret, &err), err);
    ck_assert(ret[0] == 0.5F && ret[1] == 0.5F && ret[2] == 0);
    ck_assert(ret[3] == 0.5F && ret[4] == 0.5F && ret[5] == 0);
}
END_TEST

/* ---- bytes ---- */

START_TEST(hostile_bytes)
{
    static struct table t;
    static const uint32_t others[INPUTS] = {0};
    const struct bayes_shape shape = {INPUTS, CLASSES, mixed}, wide = {INPUTS, CLASSES + 1, mixed},
                             numbers = {INPUTS, CLASSES, others};
    const struct bayes_opts opts = {.count = 1, .spread = 1};
    const struct bayes_rows rows = {t.x, ROWS, t.labels, NULL};
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(bayes_done) struct bayes m = {0}, no = {0};
    size_t len = 0, header = 24 + 4 * (INPUTS + 1);
    fill(&t, 1);
    model_of(&shape, &opts, &rows, &bytes, &len, &m);
    ck_fails(bayes_read(bytes, len, &wide, &no, &err), AS_E_INVAL, err, "expected 9 and 4");
    ck_fails(bayes_read(bytes, len, &numbers, &no, &err), AS_E_INVAL, err, "bytes");
    for (size_t n = 0; n < len; n += 13)
        ck_assert_int_eq(bayes_read(bytes, n, &shape, &no, &err), AS_E_INVAL);
    for (size_t at = header; at < len; at += 8) { /* each number */
        double kept, none = NAN;
        memcpy(&kept, bytes + at, sizeof kept);
        memcpy(bytes + at, &none, sizeof none);
        ck_assert_int_eq(bayes_read(bytes, len, &shape, &no, &err), AS_E_INVAL);
        memcpy(bytes + at, &kept, sizeof kept);
    }
    double zero = 0; /* the first variance: after three shares and three means */
    memcpy(bytes + header + 6 * 8, &zero, sizeof zero);
    ck_fails(bayes_read(bytes, len, &shape, &no, &err), AS_E_INVAL, err, "input 0");
    bytes[24] = 1; /* what the first input is */
    ck_fails(bayes_read(bytes, len, &shape, &no, &err), AS_E_INVAL, err, "other kinds");
}
END_TEST

/* Bytes need not be aligned. */
START_TEST(anywhere)
{
    static struct table t;
    const struct bayes_shape shape = {INPUTS, CLASSES, mixed};
    const struct bayes_opts opts = {.count = 1, .spread = 1};
    const struct bayes_rows rows = {t.x, ROWS, t.labels, NULL};
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(bayes_done) struct bayes m = {0}, other = {0};
    size_t len = 0;
    float a[CLASSES], b[CLASSES];
    fill(&t, 1);
    model_of(&shape, &opts, &rows, &bytes, &len, &m);
    AS_AUTO(as_freep) char *moved = as_calloc(len + 1, 1);
    memcpy(moved + 1, bytes, len);
    ck_ok(bayes_read(moved + 1, len, &shape, &other, &err), err);
    ck_ok(bayes_predict(&m, t.x, 1, a, &err), err);
    ck_ok(bayes_predict(&other, t.x, 1, b, &err), err);
    ck_assert_mem_eq(a, b, sizeof a);
}
END_TEST

START_TEST(refused)
{
    const uint32_t kinds[] = {BAYES_NUMBER, UINT32_C(1) << 30};
    const float x[] = {1, 2}, weights[] = {0, 0};
    const int32_t labels[] = {0, 1};
    const struct bayes_shape shape = {1, 2, kinds}, huge = {2, 4096, kinds};
    const struct bayes_opts opts = {.count = 1, .spread = 1};
    const struct bayes_rows none = {x, 2, labels, weights};
    char *bytes = NULL;
    size_t len = 0;
    ck_fails(bayes_train(&shape, &opts, &none, &bytes, &len, &err), AS_E_INVAL, err, "above 0");
    ck_fails(bayes_train(&huge, &opts, &none, &bytes, &len, &err), AS_E_TOO_LARGE, err,
             "more than");
    ck_assert_ptr_null(bytes);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("naive_bayes");
    TCase *t = tcase_create("naive_bayes");
    tcase_add_test(t, by_hand);
    tcase_add_test(t, words_by_hand);
    tcase_add_loop_test(t, against_a_plain_reference, 0, 4);
    tcase_add_test(t, classes_and_columns_without_rows);
    tcase_add_test(t, hostile_bytes);
    tcase_add_test(t, anywhere);
    tcase_add_test(t, refused);
    suite_add_tcase(s, t);
    return s;
}
