/* Ensemble selection and its measurement.
 *
 * The oracle does the same selection plainly: every list of members is ranked from scratch, with
 * the metrics of score.h, which have a test of their own. The other tests check what users rely on:
 * the folds are fixed by the seed, ties and single rows are defined, a candidate that is not finite
 * is skipped, and the comparison with the best single model is fair. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/ensemble/ensemble.h"
#include "tests/support/check_main.h"

#define MAX_M 6
#define MAX_ROWS 60
#define MAX_C 4

/* A problem with its own memory. */
struct problem {
    struct ensemble_input in;
    const float *rows_of[MAX_M];
    float predictions[MAX_M][MAX_ROWS * MAX_C];
    float targets[MAX_ROWS * MAX_C];
    int64_t classes[MAX_ROWS];
    float weights[MAX_ROWS];
};

/* Rows have weights, some of them none, if the seed is odd. */
static void random_problem(struct problem *p, uint64_t seed, score_metric metric)
{
    struct rng r;
    rng_init(&r, seed, 5);
    size_t M = 1 + rng_below(&r, MAX_M), rows = 2 + rng_below(&r, MAX_ROWS - 1);
    size_t C =
        score_is_of_classes(metric) ? 2 + rng_below(&r, MAX_C - 1) : 1 + rng_below(&r, MAX_C);
    for (size_t i = 0; i < rows; i++) {
        p->weights[i] = i > 0 && i % 4 == 0 ? 0 : 0.5f + (float)(i % 3);
        p->classes[i] = (int64_t)rng_below(&r, C);
        for (size_t c = 0; c < C; c++)
            p->targets[i * C + c] = (float)rng_normal(&r);
    }
    for (size_t m = 0; m < M; m++) {
        p->rows_of[m] = p->predictions[m];
        for (size_t i = 0; i < rows; i++) {
            double sum = 0;
            for (size_t c = 0; c < C; c++) {
                double hint = score_is_of_classes(metric) ? (p->classes[i] == (int64_t)c)
                                                          : p->targets[i * C + c];
                double v = hint + rng_normal(&r);
                p->predictions[m][i * C + c] = (float)(score_is_of_classes(metric) ? exp(v) : v);
                sum += p->predictions[m][i * C + c];
            }
            for (size_t c = 0; c < C && score_is_of_classes(metric); c++)
                p->predictions[m][i * C + c] /= (float)sum;
        }
    }
    p->in = (struct ensemble_input){
        .candidates = M,
        .truth = {rows, C, score_is_of_classes(metric) ? p->classes : NULL, p->targets},
        .predictions = p->rows_of,
        .metric = metric,
        .size = 1 + rng_below(&r, 8),
        .seed = seed};
    p->in.truth.weights = seed % 2 ? p->weights : NULL;
}

struct rank {
    double loss, guide;
};

static bool less(struct rank a, struct rank b)
{
    return a.loss < b.loss - 1e-12 || (fabs(a.loss - b.loss) <= 1e-12 && a.guide < b.guide - 1e-12);
}

/* The mean prediction of a list of members for the rows, [n, outputs]. */
static void mean_of(const struct ensemble_input *in, const size_t *members, size_t n_members,
                    const size_t *rows, size_t n, double *ret)
{
    size_t C = in->truth.outputs;
    for (size_t i = 0; i < n * C; i++) {
        ret[i] = 0;
        for (size_t k = 0; k < n_members; k++)
            ret[i] += (double)in->predictions[members[k]][rows[i / C] * C + i % C];
        ret[i] /= (double)n_members;
    }
}

/* Rank a list of members on the rows, from scratch. */
static struct rank oracle_rank(const struct ensemble_input *in, const size_t *members,
                               size_t n_members, const size_t *rows, size_t n)
{
    double p[MAX_ROWS * MAX_C], v = 0, guide = 0;
    struct as_err err = {0};
    score_metric by = score_is_of_classes(in->metric) ? SCORE_LOG_LOSS
                      : in->metric == SCORE_MAE       ? SCORE_MAE
                                                      : SCORE_MSE;
    mean_of(in, members, n_members, rows, n, p);
    ck_ok(score_compute(in->metric, &in->truth, rows, n, p, 1, &v, NULL, &err), err);
    ck_ok(score_compute(by, &in->truth, rows, n, p, 1, &guide, NULL, &err), err);
    v = score_is_maximized(in->metric) ? -v : v;
    return (struct rank){isnan(v) ? 0 : v, isnan(guide) ? 0 : guide}; /* no row has weight */
}

/* Select on the rows as ensemble.h says; returns the number of picks. */
static size_t oracle_greedy(const struct ensemble_input *in, const size_t *rows, size_t n,
                            const size_t *order, size_t *picks)
{
    size_t best_n = 0;
    struct rank best = {INFINITY, INFINITY};
    for (size_t k = 0; k < 3 && k < in->candidates && k < in->size; k++) {
        picks[k] = order[k];
        struct rank now = oracle_rank(in, picks, k + 1, rows, n);
        if (k == 0 || less(now, best)) {
            best = now;
            best_n = k + 1;
        }
    }
    for (size_t k = best_n; k < in->size; k++) {
        double least = INFINITY;
        size_t next = 0;
        for (size_t j = 0; j < in->candidates; j++) {
            picks[k] = j;
            double guide = oracle_rank(in, picks, k + 1, rows, n).guide;
            if (guide < least - 1e-12) {
                least = guide;
                next = j;
            }
        }
        picks[k] = next;
        struct rank now = oracle_rank(in, picks, k + 1, rows, n);
        if (less(now, best)) {
            best = now;
            best_n = k + 1;
        }
    }
    return best_n;
}

static size_t oracle_select(const struct ensemble_input *in, const size_t *rows, size_t n,
                            size_t *picks, size_t *ret_single)
{
    size_t order[MAX_M] = {0};
    for (size_t j = 0; j < in->candidates; j++) { /* insertion sort, stable */
        size_t at = j;
        struct rank mine = oracle_rank(in, &j, 1, rows, n);
        for (; at > 0 && less(mine, oracle_rank(in, &order[at - 1], 1, rows, n)); at--)
            order[at] = order[at - 1];
        order[at] = j;
    }
    *ret_single = order[0];
    if (in->method == ENSEMBLE_GREEDY)
        return oracle_greedy(in, rows, n, order, picks);
    size_t most = in->method == ENSEMBLE_BUCKETING ? 1 : in->size;
    size_t taken = most < in->candidates ? most : in->candidates;
    memcpy(picks, order, taken * sizeof *picks);
    return taken;
}

/* The metric of cross-fitted predictions: of the ensembles, or of the best single models. */
static double oracle_fitted(const struct ensemble_input *in, bool single)
{
    size_t places[MAX_ROWS], C = in->truth.outputs, folds = ensemble_n_folds(in->truth.rows);
    double p[MAX_ROWS * MAX_C], q[MAX_ROWS * MAX_C], v = 0;
    struct as_err err = {0};
    ck_ok(ensemble_places(in->truth.rows, in->seed, places, &err), err);
    for (size_t fold = 0; fold < folds; fold++) {
        size_t from[MAX_ROWS], to[MAX_ROWS], n_from = 0, n_to = 0, picks[8] = {0}, best = 0;
        for (size_t i = 0; i < in->truth.rows; i++)
            *(places[i] * folds / in->truth.rows == fold ? &to[n_to++] : &from[n_from++]) = i;
        size_t n = oracle_select(in, from, n_from, picks, &best);
        mean_of(in, single ? &best : picks, single ? 1 : n, to, n_to, q);
        for (size_t i = 0; i < n_to * C; i++)
            p[to[i / C] * C + i % C] = q[i];
    }
    ck_ok(score_compute(in->metric, &in->truth, NULL, in->truth.rows, p, 1, &v, NULL, &err), err);
    return v;
}

static void check_equal(double a, double b)
{
    if (isnan(b))
        ck_assert(isnan(a));
    else
        ck_assert_double_eq_tol(a, b, 1e-9);
}

static void check_against_oracle(const struct ensemble_input *in)
{
    struct as_err err = {0};
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    size_t rows[MAX_ROWS], picks[8] = {0}, single = 0, distinct = 0;
    unsigned counts[MAX_M] = {0};
    for (size_t i = 0; i < in->truth.rows; i++)
        rows[i] = i;
    ck_ok(ensemble_select(in, &e, &err), err);
    size_t n = oracle_select(in, rows, in->truth.rows, picks, &single);
    for (size_t k = 0; k < n; k++)
        counts[picks[k]]++;
    double sum = 0, sign = score_is_maximized(in->metric) ? 1 : -1;
    for (size_t j = 0; j < in->candidates; j++) {
        ck_assert_uint_eq(e->counts[j], counts[j]);
        ck_assert_double_eq_tol(e->weights[j], (double)counts[j] / (double)n, 1e-15);
        distinct += counts[j] > 0;
        sum += e->weights[j];
        if (!isnan(e->values[j]))
            check_equal(sign * -e->values[j], oracle_rank(in, &j, 1, rows, in->truth.rows).loss);
    }
    ck_assert_double_eq_tol(sum, 1, 1e-12);
    ck_assert_uint_eq(e->best_single, single);
    ck_assert_uint_eq(e->size, n);
    ck_assert_uint_eq(e->members, distinct);
    ck_assert_uint_eq(e->rows, in->truth.rows);
    check_equal(e->value, oracle_fitted(in, false));
    check_equal(e->single_value, oracle_fitted(in, true));
    check_equal(e->gain, sign * (e->value - e->single_value));
    ck_assert(isnan(e->gain_low) == (e->rows < ENSEMBLE_INTERVAL_ROWS || isnan(e->gain)));
    ck_assert(e->within_noise == !(e->gain_low > 0 || e->gain_high < 0));
    ck_assert(e->recommended == (e->gain > 0 && distinct > 1));
    ck_assert(in->method == ENSEMBLE_AVERAGE || isnan(e->value_selected) ||
              sign * e->value_selected >= sign * e->values[single] - 1e-12);
}

START_TEST(agrees_with_plain_selection)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct problem p;
        random_problem(&p, seed, (score_metric)_i);
        p.in.method = seed % 4 == 1   ? ENSEMBLE_AVERAGE
                      : seed % 4 == 3 ? ENSEMBLE_BUCKETING
                                      : ENSEMBLE_GREEDY;
        check_against_oracle(&p.in);
    }
}
END_TEST

START_TEST(ties_go_to_the_first_and_the_shortest)
{
    const float same[4] = {0.9f, 0.1f, 0.9f, 0.1f};
    const float *predictions[3] = {same, same, same};
    const int64_t classes[2] = {0, 0};
    struct ensemble_input in = {.candidates = 3,
                                .truth = {2, 2, classes, NULL},
                                .predictions = predictions,
                                .metric = SCORE_ERROR,
                                .size = 10};
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&in, &e, &err), err);
    ck_assert_uint_eq(e->size, 1);
    ck_assert_uint_eq(e->counts[0], 1);
    ck_assert_uint_eq(e->best_single, 0);
}
END_TEST

/* Two members with opposite errors are better together than the best one alone. */
START_TEST(opposites_complete_each_other)
{
    enum { ROWS = 40 };
    float up[ROWS], down[ROWS], fair[ROWS], targets[ROWS];
    for (int i = 0; i < ROWS; i++) {
        targets[i] = (float)i;
        up[i] = targets[i] + 2;
        down[i] = targets[i] - 2;
        fair[i] = targets[i] + (i % 2 ? 1.5f : -1.4f);
    }
    const float *predictions[3] = {fair, up, down};
    struct ensemble_input in = {.candidates = 3,
                                .truth = {ROWS, 1, NULL, targets},
                                .predictions = predictions,
                                .metric = SCORE_RMSE,
                                .size = 50,
                                .seed = 3};
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&in, &e, &err), err);
    ck_assert_uint_eq(e->best_single, 0);
    ck_assert(e->counts[1] > 0 && e->counts[2] > 0);
    ck_assert(e->value < e->single_value / 4);
    ck_assert(e->recommended && !e->within_noise && e->gain_low > 0);
}
END_TEST

/* One candidate ranks without a fault and is sure of nothing; the others are sure and rank with
 * faults. A mean has the better log loss and the worse AUC: it is recommended for the one metric
 * and not for the other. */
START_TEST(the_metric_that_is_asked_for_decides)
{
    enum { ROWS = 200 };
    static float ranks[ROWS * 2], sure[2][ROWS * 2];
    static int64_t classes[ROWS];
    struct rng r;
    rng_init(&r, 4, 4);
    for (size_t i = 0; i < ROWS; i++) {
        classes[i] = (int64_t)(i % 2);
        ranks[2 * i + 1] =
            0.5f + (float)(classes[i] ? 1 : -1) * (float)(0.001 + 0.001 * (double)i / ROWS);
        for (size_t m = 0; m < 2; m++) {
            bool wrong = rng_below(&r, 10) == 0;
            sure[m][2 * i + 1] = (classes[i] == 1) != wrong ? 0.9f : 0.1f;
            sure[m][2 * i] = 1 - sure[m][2 * i + 1];
        }
        ranks[2 * i] = 1 - ranks[2 * i + 1];
    }
    const float *predictions[3] = {ranks, sure[0], sure[1]};
    struct ensemble_input in = {.candidates = 3,
                                .truth = {ROWS, 2, classes, NULL},
                                .predictions = predictions,
                                .metric = SCORE_LOG_LOSS,
                                .size = 20,
                                .seed = 3};
    AS_AUTO(ensemble_freep) struct ensemble *loss = NULL, *auc = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&in, &loss, &err), err);
    ck_assert(loss->recommended && loss->members > 1 && loss->best_single != 0);
    in.metric = SCORE_AUC;
    ck_ok(ensemble_select(&in, &auc, &err), err);
    ck_assert_uint_eq(auc->best_single, 0);
    ck_assert_double_eq(auc->single_value, 1);
    ck_assert(!auc->recommended && auc->gain <= 0);
}
END_TEST

START_TEST(a_candidate_that_is_not_finite_is_never_taken)
{
    struct problem p;
    for (uint64_t seed = 0; seed == 0 || p.in.candidates < 2; seed++)
        random_problem(&p, seed, SCORE_LOG_LOSS);
    p.predictions[0][3] = NAN;
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&p.in, &e, &err), err);
    ck_assert_uint_eq(e->counts[0], 0);
    ck_assert(isnan(e->values[0]));
    ck_assert_uint_ne(e->best_single, 0);
    for (size_t m = 1; m < p.in.candidates; m++)
        p.predictions[m][0] = INFINITY;
    struct ensemble *none = NULL;
    ck_fails(ensemble_select(&p.in, &none, &err), AS_E_INVAL, err, "no candidate");
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(a_single_row_serves_twice)
{
    const float a[2] = {0.2f, 0.8f}, b[2] = {0.7f, 0.3f};
    const float *predictions[2] = {a, b};
    const int64_t classes[1] = {0};
    struct ensemble_input in = {.candidates = 2,
                                .truth = {1, 2, classes, NULL},
                                .predictions = predictions,
                                .metric = SCORE_ERROR,
                                .size = 4};
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&in, &e, &err), err);
    ck_assert_uint_eq(e->counts[1], 1);
    ck_assert(e->value == 0 && e->rows == 1 && e->within_noise && !e->recommended);
}
END_TEST

START_TEST(folds_are_even_and_follow_the_seed)
{
    size_t a[101], b[101], c[101], count[ENSEMBLE_FOLDS] = {0}, differ = 0;
    struct as_err err = {0};
    ck_assert_uint_eq(ensemble_n_folds(101), ENSEMBLE_FOLDS);
    ck_assert_uint_eq(ensemble_n_folds(3), 3);
    ck_assert_uint_eq(ensemble_n_folds(ENSEMBLE_MANY_ROWS + 1), ENSEMBLE_FOLDS_MANY);
    ck_ok(ensemble_places(101, 1, a, &err), err);
    ck_ok(ensemble_places(101, 1, b, &err), err);
    ck_ok(ensemble_places(101, 2, c, &err), err);
    for (size_t i = 0; i < 101; i++) {
        ck_assert_uint_eq(a[i], b[i]);
        differ += a[i] != c[i];
        count[a[i] * ENSEMBLE_FOLDS / 101]++;
    }
    for (size_t k = 0; k < ENSEMBLE_FOLDS; k++)
        ck_assert(count[k] == 20 || count[k] == 21);
    ck_assert_uint_gt(differ, 50);
}
END_TEST

START_TEST(refuses)
{
    struct problem p;
    struct ensemble *e = NULL;
    struct as_err err = {0};
    random_problem(&p, 4, SCORE_ERROR);
    struct ensemble_input in = p.in;
    in.candidates = 0;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "needs candidates");
    in = p.in;
    in.truth.rows = 0;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "needs candidates");
    in = p.in;
    in.size = 0;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "0 members");
    in.size = ENSEMBLE_MAX_SIZE + 1;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "101 members");
    in = p.in;
    in.truth.classes = NULL;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "needs targets that are classes");
    in = p.in;
    p.classes[1] = (int64_t)in.truth.outputs;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "row 1 has class");
    p.classes[1] = 0;
    in.metric = SCORE_MSE;
    p.targets[0] = NAN;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "finite numbers");
    in = p.in;
    in.candidates = ENSEMBLE_MAX_CANDIDATES + 1;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_TOO_LARGE, err, "1001 candidates");
    in = p.in;
    in.truth.rows = SIZE_MAX / 2;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_TOO_LARGE, err, "do not fit");
    ck_assert_ptr_null(e);
}
END_TEST

static void limit_bytes(struct problem *p, uint64_t seed, int64_t bytes[MAX_M])
{
    random_problem(p, seed, seed % 2 ? SCORE_LOG_LOSS : SCORE_RMSE);
    struct rng r;
    rng_init(&r, seed, 77);
    for (size_t j = 0; j < p->in.candidates; j++)
        bytes[j] = 1 + (int64_t)rng_below(&r, 100);
    p->in.method = (ensemble_method)(seed % ENSEMBLE_METHODS);
}

/* The members of each method keep within the limit, each counted once; a limit that all keep
 * changes nothing; below the smallest there is no ensemble. */
START_TEST(members_keep_within_bytes)
{
    int limited = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct problem p;
        int64_t bytes[MAX_M], used = 0, least = 100, all = 0;
        struct as_err err = {0};
        AS_AUTO(ensemble_freep) struct ensemble *any = NULL;
        AS_AUTO(ensemble_freep) struct ensemble *wide = NULL;
        AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
        struct ensemble *none = NULL;
        struct ensemble_bytes limit = {.own = bytes};
        limit_bytes(&p, seed, bytes);
        p.in.bytes = &limit;
        for (size_t j = 0; j < p.in.candidates; j++) {
            least = bytes[j] < least ? bytes[j] : least;
            all += bytes[j];
        }
        limit.max = all;
        ck_ok(ensemble_select(&p.in, &wide, &err), err);
        limit.max = least + (all - least) / 3;
        ck_ok(ensemble_select(&p.in, &e, &err), err);
        for (size_t j = 0; j < p.in.candidates; j++)
            used += e->counts[j] ? bytes[j] : 0;
        ck_assert_int_le(used, limit.max);
        limit.max = least - 1;
        ck_fails(ensemble_select(&p.in, &none, &err), AS_E_INVAL, err, "each model has more than");
        p.in.bytes = NULL;
        ck_ok(ensemble_select(&p.in, &any, &err), err);
        for (size_t j = 0; j < p.in.candidates; j++)
            ck_assert_double_eq(any->weights[j], wide->weights[j]);
        limited += memcmp(any->counts, e->counts, p.in.candidates * sizeof *e->counts) != 0;
    }
    ck_assert_int_gt(limited, 30);
}
END_TEST

/* What several models have counts once, also beside the model that it is: all keep within a limit
 * that none of the others would leave room for if each counted it. */
START_TEST(parts_of_several_members_count_once)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct problem p;
        int64_t own[MAX_M] = {0}, parts[2] = {1000, 500}, all = 1500;
        bool has[MAX_M * 2] = {false};
        struct as_err err = {0};
        AS_AUTO(ensemble_freep) struct ensemble *any = NULL;
        AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
        AS_AUTO(ensemble_freep) struct ensemble *less = NULL;
        limit_bytes(&p, seed, own);
        for (size_t j = 0; j < p.in.candidates; j++) {
            own[j] = j == 0 ? 0 : own[j]; /* the first one is the part itself */
            has[2 * j] = true;
            has[2 * j + 1] = j > 0;
            all += own[j];
        }
        struct ensemble_bytes limit = {
            .max = all, .own = own, .parts = parts, .n_parts = 2, .has = has};
        ck_ok(ensemble_select(&p.in, &any, &err), err);
        p.in.bytes = &limit;
        ck_ok(ensemble_select(&p.in, &e, &err), err);
        for (size_t j = 0; j < p.in.candidates; j++)
            ck_assert_double_eq(any->weights[j], e->weights[j]);
        limit.max = 1499; /* the second part has no room, and the first candidate alone has none */
        ck_ok(ensemble_select(&p.in, &less, &err), err);
        ck_assert_uint_eq(less->members, 1);
        ck_assert(less->counts[0] > 0);
    }
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    struct problem p;
    random_problem(&p, 9, _i ? SCORE_RMSE : SCORE_AUC);
    p.in.method = _i ? ENSEMBLE_STACKING : ENSEMBLE_GREEDY;
    for (size_t nth = 1;; nth++) {
        struct ensemble *e = NULL;
        struct as_err err = {0};
        as_mem_fail_nth(nth);
        as_status st = ensemble_select(&p.in, &e, &err);
        as_mem_fail_nth(0);
        if (st == AS_OK) {
            ensemble_free(e);
            ck_assert_uint_gt(nth, 8);
            break;
        }
        ck_assert_int_eq(st, AS_E_NOMEM);
        ck_assert_ptr_null(e);
    }
}
END_TEST

/* Many equal models that are lucky on some rows: the best of them is not better than the others,
 * and cross-fitting must not claim a gain over it, nor the opposite. Over 200 problems with 90 %
 * intervals, 20 are expected to exclude 0 by chance; 45 or more have a probability below 1e-6. */
/* A row of weight 2 counts as two rows where all rows choose, and one of 0 as none. */
START_TEST(weights_are_copies)
{
    static const ensemble_method methods[] = {ENSEMBLE_GREEDY, ENSEMBLE_AVERAGE,
                                              ENSEMBLE_BUCKETING};
    const ensemble_method method = methods[_i];
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct problem p, q;
        struct as_err err = {0};
        AS_AUTO(ensemble_freep) struct ensemble *a = NULL, *b = NULL;
        random_problem(&p, 2 * seed + 1, SCORE_LOG_LOSS);
        size_t C = p.in.truth.outputs, n = 0;
        q = p;
        for (size_t i = 0; i < p.in.truth.rows; i++) {
            p.weights[i] = (float)(i % 3);
            for (size_t k = 0; k < i % 3 && n < MAX_ROWS; k++, n++) {
                q.classes[n] = p.classes[i];
                for (size_t m = 0; m < p.in.candidates; m++)
                    memcpy(&q.predictions[m][n * C], &p.predictions[m][i * C],
                           C * sizeof *q.predictions[m]);
            }
        }
        if (n == 0 || n == MAX_ROWS)
            continue;
        for (size_t m = 0; m < p.in.candidates; m++) {
            p.rows_of[m] = p.predictions[m];
            q.rows_of[m] = q.predictions[m];
        }
        p.in.method = q.in.method = method;
        p.in.predictions = p.rows_of;
        q.in.predictions = q.rows_of;
        p.in.truth.weights = p.weights;
        p.in.truth.classes = p.classes;
        q.in.truth = (struct score_truth){n, C, q.classes, NULL, NULL};
        ck_ok(ensemble_select(&p.in, &a, &err), err);
        ck_ok(ensemble_select(&q.in, &b, &err), err);
        ck_assert_double_eq_tol(a->value_selected, b->value_selected, 1e-12);
        ck_assert_uint_eq(a->best_single, b->best_single);
        for (size_t m = 0; m < p.in.candidates; m++) {
            ck_assert_uint_eq(a->counts[m], b->counts[m]);
            ck_assert_double_eq_tol(a->values[m], b->values[m], 1e-12);
        }
    }
}
END_TEST

/* Two models, each right in one bucket; a third bucket has too few rows for a choice of its own. */
START_TEST(buckets_have_their_own)
{
    struct problem p;
    struct as_err err = {0};
    uint32_t buckets[MAX_ROWS];
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    double got[MAX_ROWS * 2];
    for (size_t i = 0; i < MAX_ROWS; i++) {
        buckets[i] = i < 5 ? 2 : i % 3 > 0; /* more rows are in bucket 1 */
        p.classes[i] = (int64_t)(i / 2 % 2);
        for (size_t m = 0; m < 2; m++)
            for (int64_t c = 0; c < 2; c++)
                p.predictions[m][i * 2 + (size_t)c] =
                    (p.classes[i] == c) == (buckets[i] == m) ? 0.9f : 0.1f;
    }
    p.rows_of[0] = p.predictions[0];
    p.rows_of[1] = p.predictions[1];
    p.in = (struct ensemble_input){.candidates = 2,
                                   .truth = {MAX_ROWS, 2, p.classes, NULL, NULL},
                                   .predictions = p.rows_of,
                                   .metric = SCORE_ERROR,
                                   .method = ENSEMBLE_BUCKETING,
                                   .size = 1,
                                   .buckets = buckets,
                                   .n_buckets = 3};
    ck_ok(ensemble_select(&p.in, &e, &err), err);
    ck_assert(e->of_bucket[0] == 0 && e->of_bucket[1] == 1);
    ck_assert(e->of_bucket[2] == 1 && e->of_bucket[3] == 1 && e->best_single == 1);
    ck_assert_double_eq_tol(e->value, 5.0 / MAX_ROWS, 1e-12); /* those of bucket 2 */
    ck_assert_double_eq_tol(e->weights[0] + e->weights[1], 1, 1e-12);
    ck_assert(e->members == 2 && e->recommended && e->gain > 0.2);
    ensemble_predict(e, &p.in, NULL, MAX_ROWS, got);
    ck_assert_double_eq(got[2 * 6], (double)p.predictions[0][2 * 6]);
    p.in.buckets = NULL; /* rows of which nobody knows the bucket */
    ensemble_predict(e, &p.in, NULL, MAX_ROWS, got);
    ck_assert_double_eq(got[2 * 6], (double)p.predictions[1][2 * 6]);
    p.in.buckets = buckets;
    p.in.n_buckets = ENSEMBLE_MAX_BUCKETS + 1;
    AS_AUTO(ensemble_freep) struct ensemble *none = NULL;
    ck_fails(ensemble_select(&p.in, &none, &err), AS_E_TOO_LARGE, err, "1001 buckets");
}
END_TEST

START_TEST(weights_that_are_refused)
{
    struct problem p;
    struct as_err err = {0};
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    random_problem(&p, 1, SCORE_ERROR);
    p.weights[1] = -1;
    ck_fails(ensemble_select(&p.in, &e, &err), AS_E_INVAL, err, "row 1 has the weight -1");
    p.weights[1] = NAN;
    ck_fails(ensemble_select(&p.in, &e, &err), AS_E_INVAL, err, "row 1 has the weight nan");
    memset(p.weights, 0, sizeof p.weights);
    ck_fails(ensemble_select(&p.in, &e, &err), AS_E_INVAL, err, "all rows have the weight 0");
}
END_TEST

START_TEST(chance_is_noise)
{
    enum { ROWS = 200, MODELS = 6 };
    static float predictions[MODELS][ROWS * 2];
    static int64_t classes[ROWS];
    const float *of[MODELS];
    int certain = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct rng r;
        rng_init(&r, seed, 8);
        for (int i = 0; i < ROWS; i++) {
            classes[i] = (int64_t)rng_below(&r, 2);
            for (int m = 0; m < MODELS; m++) { /* all say the same, with errors in the last bits */
                float p = 0.5f + (float)(m == 0 ? rng_normal(&r) * 0.1 : 0);
                p = m ? predictions[0][i * 2 + 1] + (float)rng_normal(&r) * 1e-3f : p;
                predictions[m][i * 2 + 1] = p;
                predictions[m][i * 2] = 1 - p;
            }
        }
        for (int m = 0; m < MODELS; m++)
            of[m] = predictions[m];
        struct ensemble_input in = {.candidates = MODELS,
                                    .truth = {ROWS, 2, classes, NULL},
                                    .predictions = of,
                                    .metric = SCORE_AUC,
                                    .size = 8,
                                    .seed = seed};
        AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
        struct as_err err = {0};
        ck_ok(ensemble_select(&in, &e, &err), err);
        certain += !e->within_noise;
    }
    ck_assert_int_lt(certain, 45);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/ensemble");
    TCase *t = tcase_create("ensemble");
    tcase_add_loop_test(t, agrees_with_plain_selection, 0, SCORE_METRICS);
    tcase_add_test(t, ties_go_to_the_first_and_the_shortest);
    tcase_add_test(t, opposites_complete_each_other);
    tcase_add_test(t, the_metric_that_is_asked_for_decides);
    tcase_add_test(t, a_candidate_that_is_not_finite_is_never_taken);
    tcase_add_test(t, a_single_row_serves_twice);
    tcase_add_test(t, folds_are_even_and_follow_the_seed);
    tcase_add_test(t, refuses);
    tcase_add_test(t, members_keep_within_bytes);
    tcase_add_test(t, parts_of_several_members_count_once);
    tcase_add_loop_test(t, runs_out_of_memory_cleanly, 0, 2);
    tcase_add_test(t, buckets_have_their_own);
    tcase_add_test(t, weights_that_are_refused);
    tcase_add_loop_test(t, weights_are_copies, 0, 3);
    tcase_add_test(t, chance_is_noise);
    suite_add_tcase(s, t);
    return s;
}
