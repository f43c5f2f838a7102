/* Ensemble selection.
 *
 * The oracle repeats the greedy selection of the paper and computes every loss from scratch. The
 * other tests check what users rely on: the halves are fixed by the seed, ties and single rows are
 * defined, and a candidate that is not finite is skipped. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/ensemble.h"
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
};

static void random_problem(struct problem *p, uint64_t seed, ensemble_loss loss)
{
    struct rng r;
    rng_init(&r, seed, 5);
    size_t M = 1 + rng_below(&r, MAX_M), rows = 2 + rng_below(&r, MAX_ROWS - 1);
    size_t C = ensemble_loss_is_classification(loss) ? 2 + rng_below(&r, MAX_C - 1)
                                                     : 1 + rng_below(&r, MAX_C);
    for (size_t i = 0; i < rows; i++) {
        p->classes[i] = (int64_t)rng_below(&r, C);
        for (size_t c = 0; c < C; c++)
            p->targets[i * C + c] = (float)rng_normal(&r);
    }
    for (size_t m = 0; m < M; m++) {
        p->rows_of[m] = p->predictions[m];
        for (size_t i = 0; i < rows; i++) {
            double sum = 0;
            for (size_t c = 0; c < C; c++) {
                double hint = ensemble_loss_is_classification(loss) ? (p->classes[i] == (int64_t)c)
                                                                    : p->targets[i * C + c];
                double v = hint + rng_normal(&r);
                p->predictions[m][i * C + c] =
                    (float)(ensemble_loss_is_classification(loss) ? exp(v) : v);
                sum += p->predictions[m][i * C + c];
            }
            for (size_t c = 0; c < C && ensemble_loss_is_classification(loss); c++)
                p->predictions[m][i * C + c] /= (float)sum;
        }
    }
    p->in = (struct ensemble_input){.candidates = M,
                                    .rows = rows,
                                    .outputs = C,
                                    .predictions = p->rows_of,
                                    .classes = p->classes,
                                    .targets = p->targets,
                                    .loss = loss,
                                    .size = 1 + rng_below(&r, 8),
                                    .seed = seed};
}

/* The loss of a list of members, computed plainly and from scratch. */
static double oracle_loss(const struct ensemble_input *in, const size_t *members, size_t n,
                          const bool *half, bool side)
{
    double total = 0;
    size_t rows = 0;
    for (size_t i = 0; i < in->rows; i++) {
        double mean[MAX_C] = {0};
        if (half[i] != side)
            continue;
        rows++;
        for (size_t c = 0; c < in->outputs; c++) {
            for (size_t k = 0; k < n; k++)
                mean[c] += (double)in->predictions[members[k]][i * in->outputs + c];
            mean[c] /= (double)n;
        }
        if (in->loss == ENSEMBLE_LOSS_ERROR) {
            size_t best = 0;
            for (size_t c = 1; c < in->outputs; c++)
                best = mean[c] > mean[best] ? c : best;
            total += (int64_t)best != in->classes[i];
        } else if (in->loss == ENSEMBLE_LOSS_LOG_LOSS) {
            total -= log(fmax(1e-7, fmin(1, mean[in->classes[i]])));
        } else {
            for (size_t c = 0; c < in->outputs; c++) {
                double d = mean[c] - (double)in->targets[i * in->outputs + c];
                total += (in->loss == ENSEMBLE_LOSS_MAE ? fabs(d) : d * d) / (double)in->outputs;
            }
        }
    }
    total /= (double)rows;
    return in->loss == ENSEMBLE_LOSS_RMSE ? sqrt(total) : total;
}

/* Is a list with loss `a` better than one with `b`? If the loss is the error, the log loss
 * decides. */
static bool oracle_better(const struct ensemble_input *in, const size_t *a, size_t n_a,
                          const size_t *b, size_t n_b, const bool *half)
{
    struct ensemble_input guide = *in;
    if (in->loss == ENSEMBLE_LOSS_ERROR)
        guide.loss = ENSEMBLE_LOSS_LOG_LOSS;
    return oracle_loss(&guide, a, n_a, half, true) <
           oracle_loss(&guide, b, n_b, half, true) - 1e-12;
}

/* Greedy selection as in the paper, with every loss computed from scratch. Returns the best
 * prefix's length.
 */
static size_t oracle_select(const struct ensemble_input *in, const bool *half, size_t *members)
{
    size_t best_n = 0, list[8], best_list[8];
    for (size_t n = 0; n < in->size; n++) {
        memcpy(list, members, sizeof list);
        for (size_t j = 0; j < in->candidates; j++) {
            list[n] = j;
            if (j == 0 || oracle_better(in, list, n + 1, members, n + 1, half))
                members[n] = j;
        }
        if (n == 0 || oracle_better(in, members, n + 1, best_list, best_n, half)) {
            memcpy(best_list, members, sizeof best_list);
            best_n = n + 1;
        }
    }
    return best_n;
}

static void check_against_oracle(const struct ensemble_input *in)
{
    struct as_err err = {0};
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    bool half[MAX_ROWS];
    size_t members[8] = {0};
    ck_ok(ensemble_select(in, &e, &err), err);
    ck_ok(ensemble_split(in->rows, in->seed, half, &err), err);
    size_t n = oracle_select(in, half, members), distinct = 0;
    unsigned counts[MAX_M] = {0};
    for (size_t k = 0; k < n; k++)
        counts[members[k]]++;
    double sum = 0;
    for (size_t j = 0; j < in->candidates; j++) {
        ck_assert_uint_eq(e->counts[j], counts[j]);
        ck_assert_double_eq_tol(e->weights[j], (double)counts[j] / (double)n, 1e-15);
        ck_assert_double_eq_tol(e->select_losses[j], oracle_loss(in, &j, 1, half, true), 1e-9);
        ck_assert_double_eq_tol(e->report_losses[j], oracle_loss(in, &j, 1, half, false), 1e-9);
        ck_assert(e->select_losses[e->best_single] <= e->select_losses[j]);
        distinct += counts[j] > 0;
        sum += e->weights[j];
    }
    ck_assert_double_eq_tol(sum, 1, 1e-12);
    ck_assert_uint_eq(e->size, n);
    ck_assert_uint_eq(e->members, distinct);
    ck_assert_uint_eq(e->select_rows + e->report_rows, in->rows);
    ck_assert_double_eq_tol(e->select_loss, oracle_loss(in, members, n, half, true), 1e-9);
    ck_assert_double_eq_tol(e->report_loss, oracle_loss(in, members, n, half, false), 1e-9);
    if (in->loss != ENSEMBLE_LOSS_ERROR)
        ck_assert(e->select_loss <= e->select_losses[e->best_single]);
}

START_TEST(agrees_with_plain_greedy_selection)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct problem p;
        random_problem(&p, seed, (ensemble_loss)_i);
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
                                .rows = 2,
                                .outputs = 2,
                                .predictions = predictions,
                                .classes = classes,
                                .loss = ENSEMBLE_LOSS_ERROR,
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
                                .rows = ROWS,
                                .outputs = 1,
                                .predictions = predictions,
                                .targets = targets,
                                .loss = ENSEMBLE_LOSS_RMSE,
                                .size = 50,
                                .seed = 3};
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&in, &e, &err), err);
    ck_assert_uint_eq(e->best_single, 0);
    ck_assert(e->counts[1] > 0 && e->counts[2] > 0);
    ck_assert(e->report_loss < e->report_losses[0] / 4);
}
END_TEST

START_TEST(a_candidate_that_is_not_finite_is_never_taken)
{
    struct problem p;
    for (uint64_t seed = 0; p.in.candidates < 2 || seed == 0; seed++)
        random_problem(&p, seed, ENSEMBLE_LOSS_LOG_LOSS);
    p.predictions[0][3] = NAN;
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&p.in, &e, &err), err);
    ck_assert_uint_eq(e->counts[0], 0);
    ck_assert(isinf(e->select_losses[0]) && isinf(e->report_losses[0]));
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
                                .rows = 1,
                                .outputs = 2,
                                .predictions = predictions,
                                .classes = classes,
                                .loss = ENSEMBLE_LOSS_ERROR,
                                .size = 4};
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&in, &e, &err), err);
    ck_assert_uint_eq(e->counts[1], 1);
    ck_assert(e->report_loss == 0 && e->select_rows == 1 && e->report_rows == 1);
}
END_TEST

START_TEST(halves_are_even_and_follow_the_seed)
{
    bool a[101], b[101], c[101];
    struct as_err err = {0};
    ck_ok(ensemble_split(101, 1, a, &err), err);
    ck_ok(ensemble_split(101, 1, b, &err), err);
    ck_ok(ensemble_split(101, 2, c, &err), err);
    size_t n = 0, differ = 0;
    for (size_t i = 0; i < 101; i++) {
        n += a[i];
        ck_assert_int_eq(a[i], b[i]);
        differ += a[i] != c[i];
    }
    ck_assert_uint_eq(n, 51);
    ck_assert_uint_gt(differ, 20);
}
END_TEST

START_TEST(refuses)
{
    struct problem p;
    struct ensemble *e = NULL;
    struct as_err err = {0};
    random_problem(&p, 4, ENSEMBLE_LOSS_ERROR);
    struct ensemble_input in = p.in;
    in.candidates = 0;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "needs candidates");
    in = p.in;
    in.rows = 0;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "needs candidates");
    in = p.in;
    in.size = 0;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "0 members");
    in.size = ENSEMBLE_MAX_SIZE + 1;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "101 members");
    in = p.in;
    in.classes = NULL;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "needs targets that are classes");
    in = p.in;
    p.classes[1] = (int64_t)in.outputs;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "row 1 has class");
    p.classes[1] = 0;
    in.loss = ENSEMBLE_LOSS_MSE;
    p.targets[0] = NAN;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_INVAL, err, "finite numbers");
    in = p.in;
    in.candidates = ENSEMBLE_MAX_CANDIDATES + 1;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_TOO_LARGE, err, "1001 candidates");
    in = p.in;
    in.rows = SIZE_MAX / 2;
    ck_fails(ensemble_select(&in, &e, &err), AS_E_TOO_LARGE, err, "do not fit");
    ck_assert_ptr_null(e);
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    struct problem p;
    random_problem(&p, 9, ENSEMBLE_LOSS_RMSE);
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

START_TEST(losses_have_names)
{
    ck_assert_str_eq(ensemble_loss_format(ENSEMBLE_LOSS_ERROR), "error");
    ck_assert_str_eq(ensemble_loss_format(ENSEMBLE_LOSS_LOG_LOSS), "log_loss");
    ck_assert_str_eq(ensemble_loss_format(ENSEMBLE_LOSS_MSE), "mse");
    ck_assert_str_eq(ensemble_loss_format(ENSEMBLE_LOSS_RMSE), "rmse");
    ck_assert_str_eq(ensemble_loss_format(ENSEMBLE_LOSS_MAE), "mae");
    ck_assert_int_eq(ensemble_loss_for_metric("val_accuracy", true), ENSEMBLE_LOSS_ERROR);
    ck_assert_int_eq(ensemble_loss_for_metric("val_loss", true), ENSEMBLE_LOSS_LOG_LOSS);
    ck_assert_int_eq(ensemble_loss_for_metric("val_loss", false), ENSEMBLE_LOSS_MSE);
    ck_assert_int_eq(ensemble_loss_for_metric("val_mae", false), ENSEMBLE_LOSS_MAE);
    ck_assert_int_eq(ensemble_loss_for_metric("val_r2", false), ENSEMBLE_LOSS_RMSE);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("search/ensemble");
    TCase *t = tcase_create("ensemble");
    tcase_add_loop_test(t, agrees_with_plain_greedy_selection, 0, ENSEMBLE_LOSS_MAE + 1);
    tcase_add_test(t, ties_go_to_the_first_and_the_shortest);
    tcase_add_test(t, opposites_complete_each_other);
    tcase_add_test(t, a_candidate_that_is_not_finite_is_never_taken);
    tcase_add_test(t, a_single_row_serves_twice);
    tcase_add_test(t, halves_are_even_and_follow_the_seed);
    tcase_add_test(t, refuses);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    tcase_add_test(t, losses_have_names);
    suite_add_tcase(s, t);
    return s;
}
