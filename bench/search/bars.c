#include "bench/search/bars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "bench/bench.h"
#include "bench/search/problems_priv.h"
#include "bench/search/sweep.h"

#define FIRST_SEED 1000
#define SEEDS 21

#define LEVY_X(name) name ": {type: float, min: -10, max: 10}\n"
#define LEVY_4 LEVY_X("a") LEVY_X("b") LEVY_X("c") LEVY_X("d")
static const struct problem_def levy4 = {"levy4", LEVY_4, fn_levy, 0, "1", 0, NULL};
static const struct problem_def levy10 = {
    "levy10", LEVY_4 LEVY_X("e") LEVY_X("f") LEVY_X("g") LEVY_X("h") LEVY_X("i") LEVY_X("j"),
    fn_levy,  0,
    "1",      0,
    NULL};

static const struct bar {
    const char *problem;
    size_t trials;
    double median, upper;          /* NaN: none */
    const struct problem_def *own; /* same name, different domain; NULL: the public problem */
} bars[] = {
    {"branin", 30, 1e-4, 5e-3},         {"branin", 50, 1e-5, 1e-4},
    {"six-hump-camel", 30, 1e-4, 1e-3}, {"goldstein-price", 60, 1e-3, 1e-2},
    {"hartmann3", 30, 1e-4, NAN},       {"hartmann3", 50, 1e-6, NAN},
    {"hartmann6", 60, 1e-4, 0.12},      {"hartmann6-50d", 150, 0.02, 0.2},
    {"ackley5", 100, 0.5, 1.5},         {"ackley20", 200, 2.0, 2.5},
    {"levy4", 60, 1e-4, 0.1, &levy4},   {"levy10", 120, 0.2, NAN, &levy10},
    {"rosenbrock4", 100, 2, 3},         {"rosenbrock10", 150, 30, 60},
    {"sphere10", 60, 1e-2, 2e-2},       {"ellipsoid10", 120, 15, 25},
    {"shekel10", 80, 0.01, 6.5},        {"styblinski5", 100, 28.4, NAN},
    {"rastrigin4", 100, 16, NAN},       {"griewank6", 100, 0.85, NAN},
    {"schwefel4", 120, 600, NAN},       {"func2c", 80, 3.3e-4, NAN},
    {"func3c", 80, 0.0222, NAN},        {"training7", 80, 1e-4, NAN},
    {"ackley-mixed", 80, 0.02, NAN},    {"cat10", 80, 1e-3, NAN},
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The regret of each seed at the bar's trials, ascending. */
static as_status run_seeds(const struct bar *b, const char *method, double regrets[SEEDS],
                           struct as_err *err)
{
    AS_AUTO(problem_freep) struct problem *p = NULL;
    AS_AUTO(as_freep) double *trace = as_calloc(b->trials, sizeof(double));
    AS_AUTO(as_freep) double *ms = as_calloc(b->trials, sizeof(double));
    if (trace == NULL || ms == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct sweep_record record = {.regret = trace, .ms = ms};
    as_status st = problem_open(b->own != NULL ? b->own : problem_find(b->problem), &p, err);
    if (st < 0)
        return st;
    for (size_t s = 0; s < SEEDS; s++) {
        st = sweep_run(p, method, FIRST_SEED + s, 1, b->trials, &record, err);
        if (st < 0)
            return st;
        regrets[s] = fmax(trace[b->trials - 1], 0);
    }
    qsort(regrets, SEEDS, sizeof(double), by_size);
    return AS_OK;
}

static void report(const struct bar *b, const double regrets[SEEDS])
{
    char name[64], note[128], upper[32] = "";
    double median = regrets[SEEDS / 2], q75 = regrets[3 * (SEEDS - 1) / 4];
    bool met = median <= b->median && !(q75 > b->upper);
    (void)snprintf(name, sizeof name, "bar %s, %zu trials", b->problem, b->trials);
    if (isfinite(b->upper))
        (void)snprintf(upper, sizeof upper, " (bar %g)", b->upper);
    (void)snprintf(note, sizeof note, "%s; upper quartile %.3g%s, highest %.3g",
                   met ? "met" : "MISSED", q75, upper, regrets[SEEDS - 1]);
    bench_report(name, median, "regret", b->median, NAN, NULL, note);
}

static bool is_wanted(const char *only, const char *name)
{
    size_t len = strlen(name);
    const char *at = only != NULL ? strstr(only, name) : NULL;
    return only == NULL ||
           (at != NULL && (at == only || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'));
}

as_status bars_run(const char *method, const char *only, bool json, struct as_err *err)
{
    char *argv[] = {(char *)"search-quality", (char *)"--json", NULL};
    size_t n = 0;
    (void)bench_start("search-quality", "", json ? 2 : 1, argv);
    for (size_t i = 0; i < AS_ARRAY_LEN(bars); i++) {
        double regrets[SEEDS] = {0};
        if (!is_wanted(only, bars[i].problem))
            continue;
        as_status st = run_seeds(&bars[i], method, regrets, err);
        if (st < 0)
            return as_err_prefix(err, st, "%s", bars[i].problem);
        report(&bars[i], regrets);
        n++;
    }
    return n > 0 ? AS_OK : as_fail(err, AS_E_NOT_FOUND, "no bar is set for %s", only);
}
