/* What priors gain and cost: whole sweeps of every method with a good prior, a wrong one and none.
 *
 * The figure is the sum over two problems of the mean of log10(regret) over forty seeds. With a
 * good prior half the trials reach as far as all trials do without one, but for half a decade (gp:
 * 0.36 with 80 seeds; the standard error is 0.12). With a wrong prior (of every parameter, at the
 * other end of its range, and narrow) all trials reach as far as half of them do without one, but
 * for a tenth of a decade. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "search/cmaes/cmaes.h"
#include "search/evolution/evolution.h"
#include "search/gp/gp.h"
#include "search/sampling/sampler.h"
#include "search/tpe/tpe.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define SEEDS 40
#define FLOOR 1e-4
#define SHORT 0.5 /* by how much half the trials with a good prior may fall short */

enum { NONE, GOOD, WRONG, KINDS };

/* ---- the problems; the least value is 0 ---- */

/* Levy's function: a valley with many local minima, lowest where every x is 1. */
static double levy(const struct sweep *w, size_t t)
{
    double sum = 0, last = 0;
    for (size_t i = 0; i < 4; i++) {
        double v = 1 + (sweep_number(w, t, i) - 1) / 4;
        if (i == 0)
            sum += pow(sin(M_PI * v), 2);
        else
            sum += (last - 1) * (last - 1) * (1 + 10 * pow(sin(M_PI * last + 1), 2));
        last = v;
    }
    return sum + (last - 1) * (last - 1) * (1 + pow(sin(2 * M_PI * last), 2));
}

/* A parameter with a good prior and a wrong one. */
#define LEVY_X(name, good, wrong)                                                                  \
    name ": {type: float, min: -6, max: 14, prior: ["                                              \
         "{mean: " good ", deviation: 1}, {mean: " wrong ", deviation: 1}]}\n"

/* The best is at kind b, lr 1e-2, depth 7, mode r. */
static double tree(const struct sweep *w, size_t t)
{
    double lr = log10(sweep_number(w, t, 1)) + 2, depth = sweep_number(w, t, 2);
    double sum = lr * lr + (sweep_number(w, t, 4) == 2 ? 0 : 0.5);
    if (sweep_number(w, t, 0) == 1)
        return sum + (depth - 7) * (depth - 7) / 16;
    return sum + 1 + fabs(sweep_number(w, t, 3) - 0.3);
}

/* `prior` is the list of a good one and a wrong one. */
static const struct {
    const char *space;
    double (*value)(const struct sweep *w, size_t t);
} problems[] = {
    {LEVY_X("x1", "1.5", "12") LEVY_X("x2", "0.5", "13") LEVY_X("x3", "1.5", "13")
         LEVY_X("x4", "0.5", "12"),
     levy},
    {"kind: {type: categorical, values: [a, b, c],\n"
     "       prior: [{weights: {b: 5}}, {weights: {c: 5}}]}\n"
     "lr: {type: float, min: 1e-5, max: 1, scale: log,\n"
     "     prior: [{mean: 0.015, deviation: 0.7}, {mean: 1e-5, deviation: 0.7}]}\n"
     "depth: {type: int, min: 1, max: 12, when: {kind: b},\n"
     "        prior: [{mean: 6, deviation: 2}, {mean: 1, deviation: 2}]}\n"
     "rate: {type: float, min: 0, max: 1, when: {kind: [a, c]}}\n"
     "mode: {type: categorical, values: [p, q, r, s],\n"
     "       prior: [{weights: {r: 5}}, {weights: {p: 5}}]}\n",
     tree},
};

static struct space *open_space(size_t problem, int kind)
{
    JSON_AUTO j = NULL;
    struct space *s = NULL;
    struct as_err err = {0};
    const char *key;
    json_t *p;
    ck_ok(yaml_parse(problems[problem].space, strlen(problems[problem].space), &j, &err), err);
    json_object_foreach(j, key, p)
    {
        json_t *prior =
            json_incref(json_array_get(json_object_get(p, "prior"), kind == WRONG ? 1 : 0));
        (void)json_object_del(p, "prior");
        if (kind != NONE && prior)
            ck_assert_int_eq(json_object_set(p, "prior", prior), 0);
        json_decref(prior);
    }
    ck_ok(space_parse(j, "/parameters", &s, &err), err);
    return s;
}

/* Adds log10 of the best value after half of the trials and after all. */
static void run(const struct search_method *m, const struct space *s, size_t problem, uint64_t seed,
                size_t trials, double *half, double *all)
{
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    double best = INFINITY;
    sweep_init(&w, s, 500 + seed, true);
    w.spec.method = m;
    for (size_t t = 0; t < trials; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_tell(&w, t, problems[problem].value(&w, t));
        best = fmin(best, w.trials[t].values[0]);
        if (t + 1 == trials / 2)
            *half += log10(fmax(best, FLOOR)) / SEEDS;
    }
    *all += log10(fmax(best, FLOOR)) / SEEDS;
}

static const struct {
    const struct search_method *method;
    size_t trials;
} methods[] = {{&search_gp, 24},         {&search_tpe, 60},    {&search_cmaes, 120},
               {&search_evolution, 120}, {&search_random, 60}, {&search_sobol, 60}};

START_TEST(priors_help_and_are_overcome)
{
    const struct search_method *m = methods[_i].method;
    double half[KINDS] = {0}, all[KINDS] = {0};
    for (size_t problem = 0; problem < AS_ARRAY_LEN(problems); problem++)
        for (int kind = 0; kind < KINDS; kind++) {
            AS_AUTO(space_freep) struct space *s = open_space(problem, kind);
            for (uint64_t seed = 0; seed < SEEDS; seed++)
                run(m, s, problem, seed, methods[_i].trials, &half[kind], &all[kind]);
        }
    ck_assert_msg(half[GOOD] <= all[NONE] + SHORT, "%s: good %g at half, without %g", m->name,
                  half[GOOD], all[NONE]);
    ck_assert_msg(all[WRONG] <= half[NONE] + 0.1, "%s: wrong %g, without %g at half", m->name,
                  all[WRONG], half[NONE]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/prior/quality");
    TCase *t = tcase_create("quality");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, priors_help_and_are_overcome, 0, AS_ARRAY_LEN(methods));
    suite_add_tcase(s, t);
    return s;
}
