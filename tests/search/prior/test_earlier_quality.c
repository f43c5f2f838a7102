/* What earlier sweeps gain and cost: whole sweeps with a copy, a shifted and an unrelated sweep
 * before them, and without.
 *
 * The figure is the mean of log10(regret) over two problems and six seeds, of the cheaper methods
 * forty: gp's margins are 0.5 to 2.6, where they were 0.4 to 2.2 with twelve. With a copy half the
 * trials reach as far as all trials do without one; with a shifted sweep the regret is smaller
 * throughout; with an unrelated one it is at most a tenth larger at the end. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/cmaes/cmaes.h"
#include "search/evolution/evolution.h"
#include "search/gp/gp.h"
#include "search/prior/warm_start.h"
#include "search/tpe/tpe.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define FLOOR 1e-4
#define NOISE                                                                                      \
    0.5 /* about two standard errors of these means: libraries round as the processor likes */
#define BEFORE_MOST 120

enum { NONE, COPY, SHIFTED, UNRELATED, KINDS };

/* ---- the problems; the least value is 0 ---- */

static double levy_at(const struct sweep *w, size_t t, double off, bool turned)
{
    double sum = 0, last = 0;
    for (size_t i = 0; i < 4; i++) {
        double x = sweep_number(w, t, i);
        double v = 1 + ((turned ? 8 - x + 2 * (double)i : x) - 1 - off) / 4;
        if (i == 0)
            sum += pow(sin(M_PI * v), 2);
        else
            sum += (last - 1) * (last - 1) * (1 + 10 * pow(sin(M_PI * last + 1), 2));
        last = v;
    }
    return sum + (last - 1) * (last - 1) * (1 + pow(sin(2 * M_PI * last), 2));
}

/* The best is at kind b, lr 1e-2, depth 7, mode r; of the shifted one at lr 2e-2 and depth 6, in
 * another unit; of the unrelated one elsewhere. */
static double tree_at(const struct sweep *w, size_t t, int kind)
{
    double lr = log10(sweep_number(w, t, 1)), depth = sweep_number(w, t, 2);
    double best_lr = kind == SHIFTED ? -1.7 : kind == UNRELATED ? -4.5 : -2;
    double best_depth = kind == SHIFTED ? 6 : kind == UNRELATED ? 2 : 7;
    double mode = sweep_number(w, t, 4) == (kind == UNRELATED ? 0 : 2) ? 0 : 0.5;
    double sum = (lr - best_lr) * (lr - best_lr) + mode;
    if (sweep_number(w, t, 0) == (kind == UNRELATED ? 2 : 1))
        sum += isnan(depth) ? 0 : (depth - best_depth) * (depth - best_depth) / 16;
    else
        sum += 1 + (isnan(depth) ? fabs(sweep_number(w, t, 3) - 0.3) : 0);
    return kind == SHIFTED ? 100 + 10 * sum : sum;
}

static double value_of(size_t problem, int kind, const struct sweep *w, size_t t)
{
    if (problem == 1)
        return tree_at(w, t, kind);
    double v = levy_at(w, t, kind == SHIFTED ? 1 : 0, kind == UNRELATED);
    return kind == SHIFTED ? 5 * v - 3 : v;
}

#define LEVY_X(name) name ": {type: float, min: -6, max: 14}\n"

static const char *const spaces[] = {
    LEVY_X("x1") LEVY_X("x2") LEVY_X("x3") LEVY_X("x4"),
    "kind: {type: categorical, values: [a, b, c]}\n"
    "lr: {type: float, min: 1e-5, max: 1, scale: log}\n"
    "depth: {type: int, min: 1, max: 12, when: {kind: b}}\n"
    "rate: {type: float, min: 0, max: 1, when: {kind: [a, c]}}\n"
    "mode: {type: categorical, values: [p, q, r, s]}\n",
};

/* The list of one snapshot of an earlier sweep. */
static struct warm_start *take(const struct sweep *w)
{
    size_t order[BEFORE_MOST];
    struct warm_start *ret = NULL;
    struct json_fields f;
    struct as_err err = {0};
    JSON_AUTO trials = json_array();
    for (size_t i = 0; i < w->n; i++) {
        size_t k = i;
        for (; k > 0 && w->trials[order[k - 1]].values[0] > w->trials[i].values[0]; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    for (size_t i = 0; i < w->n && i < WARM_START_TRIALS; i++)
        ck_assert_int_eq(
            json_array_append_new(
                trials, json_pack("{s:o, s:f}", "params",
                                  config_to_json(w->spec.space, w->trials[order[i]].config), "cost",
                                  w->trials[order[i]].values[0])),
            0);
    JSON_AUTO j = json_pack("{s:[{s:s, s:I, s:O}]}", "prior", "sweep", "before", "completed",
                            (json_int_t)w->n, "trials", trials);
    ck_ok(json_fields_init(&f, j, "/search", &err), err);
    ck_ok(warm_start_parse(&f, w->spec.space, &ret, &err), err);
    return ret;
}

static void run(const struct search_method *m, const struct space *s, size_t problem, int kind,
                uint64_t seed, const struct warm_start *before, struct sweep *w, size_t trials,
                double *half, double *all)
{
    struct as_err err = {0};
    double best = INFINITY;
    sweep_init(w, s, seed, true);
    w->spec.method = m;
    w->spec.earlier = before;
    for (size_t t = 0; t < trials; t++) {
        ck_ok(sweep_ask(w, &err), err);
        sweep_tell(w, t, value_of(problem, kind, w, t));
        best = fmin(best, w->trials[t].values[0]);
        if (half && t + 1 == trials / 2)
            *half += log10(fmax(best, FLOOR));
    }
    if (all)
        *all += log10(fmax(best, FLOOR));
}

static const struct {
    const struct search_method *method;
    size_t trials, seeds, before; /* before: of the earlier sweep */
} methods[] = {{&search_gp, 48, 6, 40},
               {&search_tpe, 40, 40, 120},
               {&search_cmaes, 60, 40, 120},
               {&search_evolution, 60, 40, 120}};

START_TEST(earlier_sweeps_help_and_do_not_mislead)
{
    const struct search_method *m = methods[_i].method;
    size_t seeds = methods[_i].seeds;
    double half[KINDS] = {0}, all[KINDS] = {0};
    for (size_t problem = 0; problem < AS_ARRAY_LEN(spaces); problem++) {
        AS_AUTO(space_freep) struct space *s = space_of_yaml(spaces[problem]);
        for (int kind = NONE; kind < KINDS; kind++)
            for (uint64_t seed = 0; seed < seeds; seed++) {
                AS_AUTO(sweep_done) struct sweep old = {0}, now = {0};
                AS_AUTO(warm_start_freep) struct warm_start *before = NULL;
                if (kind != NONE) {
                    run(m, s, problem, kind, 900 + seed, NULL, &old, methods[_i].before, NULL,
                        NULL);
                    before = take(&old);
                }
                run(m, s, problem, COPY, seed, before, &now, methods[_i].trials, &half[kind],
                    &all[kind]);
            }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        half[kind] /= (double)seeds;
        all[kind] /= (double)seeds;
    }
    ck_assert_msg(half[COPY] <= all[NONE] + NOISE, "%s: copy %g at half, without %g", m->name,
                  half[COPY], all[NONE]);
    ck_assert_msg(half[SHIFTED] <= half[NONE] - 0.3 && all[SHIFTED] <= all[NONE] - 0.3,
                  "%s: shifted %g and %g, without %g and %g", m->name, half[SHIFTED], all[SHIFTED],
                  half[NONE], all[NONE]);
    double limit = 2 * log10(1.1) + NOISE / 4; /* of two problems */
    ck_assert_msg(all[UNRELATED] <= all[NONE] + limit, "%s: unrelated %g, without %g", m->name,
                  all[UNRELATED], all[NONE]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/prior/earlier/quality");
    TCase *t = tcase_create("quality");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, earlier_sweeps_help_and_do_not_mislead, 0, AS_ARRAY_LEN(methods));
    suite_add_tcase(s, t);
    return s;
}
