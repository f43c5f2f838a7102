/* The restated recipes as peers: they reach near the optimum where random search does not, on
 * floats and on a space with choices and conditions, and accept failures and pending trials. */
#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "bench/search/peer.h"
#include "bench/search/sweep.h"
#include "tests/support/check_main.h"

#define MAX_TRIALS 40
#define RANDOM_SEEDS 9

static struct as_err err;

/* The logarithm of the regret after `trials`. */
static double log_regret(const struct problem *p, const char *method, uint64_t seed, size_t trials)
{
    double regret[MAX_TRIALS], ms[MAX_TRIALS];
    struct sweep_record r = {.regret = regret, .ms = ms};
    ck_ok(sweep_run(p, method, seed, 1, trials, &r, &err), err);
    return log(fmax(regret[trials - 1], 1e-7 * p->scale));
}

static double random_search(const struct problem *p, size_t trials)
{
    double sum = 0;
    for (uint64_t seed = 0; seed < RANDOM_SEEDS; seed++)
        sum += log_regret(p, "random", seed, trials);
    return sum / RANDOM_SEEDS;
}

/* Geometric mean of two seeds, at most `part` of random search's. */
static void is_better(const char *method, const char *problem, size_t trials, double part)
{
    AS_AUTO(problem_freep) struct problem *p = NULL;
    ck_ok(problem_open(problem_find(problem), &p, &err), err);
    double own = (log_regret(p, method, 1, trials) + log_regret(p, method, 2, trials)) / 2;
    double ratio = exp(own - random_search(p, trials));
    ck_assert_msg(ratio <= part, "%s on %s leaves %.3g of random search's regret", method, problem,
                  ratio);
}

START_TEST(the_optimum_of_floats)
{
    is_better("hebo", "branin", 25, 0.2);
    is_better("botorch", "branin", 25, 0.2);
}
END_TEST

START_TEST(the_optimum_of_a_mixed_space)
{
    is_better("hebo", "training7", MAX_TRIALS, 0.5);
    is_better("botorch", "training7", MAX_TRIALS, 0.5);
}
END_TEST

/* Trials fail on cliff-1, and three are under way at a time. The same seed gives the same sweep. */
START_TEST(failures_and_pending_trials)
{
    static const char *const methods[] = {"hebo", "botorch"};
    AS_AUTO(problem_freep) struct problem *p = NULL;
    ck_ok(problem_open(problem_find("cliff-1"), &p, &err), err);
    for (size_t m = 0; m < AS_ARRAY_LEN(methods); m++) {
        double a[MAX_TRIALS], b[MAX_TRIALS], ms[MAX_TRIALS];
        struct sweep_record first = {.regret = a, .ms = ms}, again = {.regret = b, .ms = ms};
        ck_ok(sweep_run(p, methods[m], 5, 3, 26, &first, &err), err);
        ck_ok(sweep_run(p, methods[m], 5, 3, 26, &again, &err), err);
        ck_assert_mem_eq(a, b, 26 * sizeof *a);
        ck_assert(isfinite(a[25]));
    }
}
END_TEST

START_TEST(an_unknown_recipe_is_refused)
{
    JSON_AUTO answer = NULL;
    ck_fails(peer_request(PEER_RECIPES, json_pack("{s:s}", "op", "none-such"), &answer, &err),
             AS_E_IO, err, "none-such");
    ck_ok(peer_has(PEER_RECIPES, "hebo", &err), err); /* another child */
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("bench_peers");
    TCase *t = tcase_create("recipes");
    bool is_here = peer_has(PEER_RECIPES, "hebo", &err) == AS_OK;
    peer_close(); /* each test is a fork and starts its own */
    tcase_set_timeout(t, PATIENCE_MS / 1000.0 * 4);
    add_test_if(t, the_optimum_of_floats, is_here, err.msg);
    add_test_if(t, the_optimum_of_a_mixed_space, is_here, err.msg);
    add_test_if(t, failures_and_pending_trials, is_here, err.msg);
    add_test_if(t, an_unknown_recipe_is_refused, is_here, err.msg);
    suite_add_tcase(s, t);
    return s;
}
