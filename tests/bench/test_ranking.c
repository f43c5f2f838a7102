/* Sweeps, their traces in a file, and what is made of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "bench/search/ranking.h"
#include "bench/search/sweep.h"
#include "bench/search/traces.h"
#include "tests/support/check_main.h"

#define TRIALS 20

static struct as_err err;

static char path[64];

static void make_path(void)
{
    memcpy(path, "/tmp/test-traces-XXXXXX", sizeof "/tmp/test-traces-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
}

static void remove_path(void)
{
    ck_assert_int_eq(unlink(path), 0);
}

static void append(const char *problem, const char *method, uint64_t seed, double regret)
{
    double ms[2] = {0.5, 0.25}, regrets[2] = {INFINITY, regret};
    struct trace t = {.slots = 1, .seed = seed, .n = 2, .regret = regrets, .ms = ms};
    (void)snprintf(t.problem, sizeof t.problem, "%s", problem);
    (void)snprintf(t.method, sizeof t.method, "%s", method);
    t.peer = strcmp(method, "gp") == 0 ? NULL : "Other 1.2";
    ck_ok(traces_append(path, &t, &err), err);
}

START_TEST(traces_come_back)
{
    AS_AUTO(traces_done) struct traces t = {0};
    append("branin", "gp", 3, 0.125);
    append("branin", "other", 4, 1e-12);
    ck_ok(traces_load(&t, path, &err), err);
    ck_assert_uint_eq(t.n, 2);
    ck_assert_str_eq(t.peer, "Other 1.2");
    const struct trace *x = traces_find(&t, "branin", "gp", 1, 3);
    ck_assert(x != NULL && x->n == 2 && isinf(x->regret[0]));
    ck_assert(x->regret[1] == 0.125 && x->ms[1] == 0.25);
    ck_assert(traces_find(&t, "branin", "gp", 1, 4) == NULL);
    ck_assert(traces_find(&t, "branin", "gp", 8, 3) == NULL);
    ck_ok(traces_load(&t, "/nowhere/at/all", &err), err);
}
END_TEST

START_TEST(a_broken_line_is_named)
{
    static const char *const wrong[][2] = {
        {"problem,method,slots,seed,trial,regret,ms\nbranin,gp,1,0,1\n", ":2: expected 7 fields"},
        {"branin,gp,1,0,2,0.5,1\n", ":1: trial 2 does not follow"},
        {"branin,gp,1,0,1,0.5,1\nbranin,gp,1,1,2,0.5,1\n", ":2: trial 2 does not follow"},
        {"branin,gp,1,0,1,much,1\n", "much"},
        {"branin,gp,1,0,1,0.5,1,7\n", "expected 7 fields"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++) {
        AS_AUTO(traces_done) struct traces t = {0};
        ck_ok(file_replace(path, wrong[i][0], strlen(wrong[i][0]), 0600, &err), err);
        ck_fails(traces_load(&t, path, &err), AS_E_INVAL, err, wrong[i][1]);
    }
}
END_TEST

/* Two problems, two seeds: gp is 4 times better on the first, below the floor as the other on the
 * second, and a third problem lacks a trace. */
START_TEST(ranks_ratios_and_wins)
{
    static const char *const names[3] = {"branin", "hartmann3", "levy4"};
    static const struct ranked_method methods[2] = {{"gp", "gp", 1}, {"other", "other", 1}};
    AS_AUTO(traces_done) struct traces t = {0};
    AS_AUTO(ranking_freep) struct ranking *r = NULL;
    struct problem *problems[3] = {0};
    for (size_t i = 0; i < 3; i++)
        ck_ok(problem_open(problem_find(names[i]), &problems[i], &err), err);
    for (uint64_t s = 0; s < 2; s++) {
        append("branin", "gp", s, 1 + (double)s);
        append("branin", "other", s, 4 + 4 * (double)s);
        append("hartmann3", "gp", s, 1e-12);
        append("hartmann3", "other", s, -1e-15);
        append("levy4", "gp", s, 1);
    }
    ck_ok(traces_load(&t, path, &err), err);
    const struct ranking_spec spec = {problems, 3, methods, 2, &t, 0, 2};
    ck_ok(ranking_create(&spec, 2, &r, &err), err);
    ck_assert_uint_eq(ranking_problems(r), 2);
    ck_assert_uint_eq(ranking_seeds(r, 2), 0);
    ck_assert_double_eq_tol(ranking_mean_rank(r, 0).value, (1 + 1.5) / 2, 1e-12);
    ck_assert_double_eq_tol(ranking_mean_rank(r, 1).value, (2 + 1.5) / 2, 1e-12);
    ck_assert_double_eq_tol(ranking_regret(r, 0, 0).value, 1.5, 1e-12);
    ck_assert(ranking_regret(r, 1, 1).value == 0);
    struct interval ratio = ranking_ratio(r, 0, 1, false);
    ck_assert_double_eq_tol(ratio.value, 0.5, 1e-12); /* sqrt(1/4 * 1) */
    ck_assert(ratio.low <= 0.5 && ratio.high >= 0.5 && ratio.low > 0.1 && ratio.high <= 1);
    size_t wins, ties;
    ranking_wins(r, 0, 1, &wins, &ties);
    ck_assert(wins == 1 && ties == 1);
    for (size_t i = 0; i < 3; i++)
        problem_free(problems[i]);
}
END_TEST

/* Every method of ours, with one slot and with eight: the same seed gives the same trace, and the
 * best of a problem without noise never gets worse. */
START_TEST(a_sweep_is_its_seed)
{
    static const char *const methods[] = {"random", "sobol", "gp"};
    AS_AUTO(problem_freep) struct problem *p = NULL;
    ck_ok(problem_open(problem_find("optimizers"), &p, &err), err);
    for (size_t m = 0; m < AS_ARRAY_LEN(methods); m++)
        for (size_t slots = 1; slots <= 8; slots += 7) {
            double a[TRIALS], b[TRIALS], ms[TRIALS];
            struct sweep_record first = {.regret = a, .ms = ms}, second = {.regret = b, .ms = ms};
            ck_ok(sweep_run(p, methods[m], 5, slots, TRIALS, &first, &err), err);
            ck_ok(sweep_run(p, methods[m], 5, slots, TRIALS, &second, &err), err);
            ck_assert_uint_eq(first.failed, 0);
            ck_assert_mem_eq(a, b, sizeof a);
            for (size_t i = 1; i < TRIALS; i++)
                ck_assert(a[i] <= a[i - 1]);
        }
    double a[1], ms[1];
    struct sweep_record record = {.regret = a, .ms = ms};
    ck_fails(sweep_run(p, "none-such", 5, 1, 1, &record, &err), AS_E_NOT_FOUND, err, "none-such");
}
END_TEST

/* Half of a uniform sequence fails on this problem, before the tenth failure and after it. */
START_TEST(failures_after_the_tenth_are_counted)
{
    AS_AUTO(problem_freep) struct problem *p = NULL;
    double regret[200], ms[200];
    struct sweep_record record = {.regret = regret, .ms = ms};
    ck_ok(problem_open(problem_find("slope-1"), &p, &err), err);
    ck_ok(sweep_run(p, "sobol", 5, 1, 200, &record, &err), err);
    ck_assert_uint_gt(record.failed, 20);
    ck_assert_uint_eq(record.failed - record.failed_late, 10);
    ck_assert_uint_lt(record.late, 190);
    ck_assert_uint_gt(record.late, record.failed_late + 40);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("bench_ranking");
    TCase *t = tcase_create("ranking");
    tcase_add_checked_fixture(t, make_path, remove_path);
    tcase_add_test(t, traces_come_back);
    tcase_add_test(t, a_broken_line_is_named);
    tcase_add_test(t, ranks_ratios_and_wins);
    tcase_add_test(t, a_sweep_is_its_seed);
    tcase_add_test(t, failures_after_the_tenth_are_counted);
    suite_add_tcase(s, t);
    return s;
}
