/* search-ending: what limits.stop_when would have saved and lost, and whether the bound holds.
 *
 * Runs one sweep for each problem and seed to its last trial, and computes the bound of what is
 * left to gain (search/regret_bound.h) after the counts of completed trials at which the service
 * computes it. The true regret is known, so each bound can be judged: it holds if the regret is
 * not above it. The rule is that of the service: three bounds in a row within the limit, after so
 * many completed trials. A line of CSV for each bound, then a table on standard error. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/str.h"
#include "bench/search/sweep.h"
#include "search/regret_bound.h"

#define EX_USAGE_STATUS 64
#define IN_A_ROW 3

struct settings {
    int64_t seeds, first_seed, trials, min_trials;
    double relative;
    const char *problems, *method;
    bool help;
};

/* One sweep. */
struct ending {
    const struct settings *set;
    const struct problem *problem;
    uint64_t seed;
    size_t n_ended, due;
    size_t n_bounds, n_held; /* of those that say something */
    size_t n_within;         /* the latest bounds in a row that are within the limit */
    size_t stopped_at;       /* ended trials; 0: the rule did not end it */
    double regret_then;
};

/* Over all sweeps. */
struct totals {
    size_t sweeps, stopped, bounds, held, trials, saved;
    size_t worse;    /* ended sweeps that lost more than the limit, in units of the scale */
    double lost_sum; /* regret lost, in units of the problem's scale */
};

static as_status on_ended(void *ctx, const struct search_spec *spec, const struct history *history,
                          double regret, struct as_err *err)
{
    struct ending *e = ctx;
    struct regret_bound b;
    size_t completed = 0;
    e->n_ended++;
    for (size_t i = 0; i < history->n; i++)
        completed += history->trials[i].state == OBSERVED_COMPLETED;
    if (completed < e->due)
        return AS_OK;
    e->due = regret_bound_next(completed);
    as_status st = regret_bound_compute(spec, history, &b, err);
    if (st < 0)
        return st;
    (void)printf("%s,%" PRIu64 ",%zu,%d,%.9g,%.9g,%.9g,%.9g\n", e->problem->def->name, e->seed,
                 completed, b.is_enough, b.bound, b.relative, regret, e->problem->scale);
    bool says = b.is_known && b.is_enough;
    e->n_within = says && b.relative <= e->set->relative ? e->n_within + 1 : 0;
    e->n_bounds += says;
    e->n_held += says && regret <= b.bound;
    if (e->stopped_at == 0 && e->n_within >= IN_A_ROW && (int64_t)completed >= e->set->min_trials) {
        e->stopped_at = e->n_ended;
        e->regret_then = regret;
    }
    return AS_OK;
}

static as_status run_one(const struct settings *s, const struct problem *p, uint64_t seed,
                         struct totals *t, struct as_err *err)
{
    size_t n = (size_t)s->trials;
    AS_AUTO(as_freep) double *regret = as_calloc(n, sizeof(double));
    AS_AUTO(as_freep) double *ms = as_calloc(n, sizeof(double));
    if (!regret || !ms)
        return as_fail_nomem(err);
    struct ending e = {.set = s, .problem = p, .seed = seed, .due = regret_bound_next(0)};
    struct sweep_record record = {.regret = regret, .ms = ms, .on_ended = on_ended, .ctx = &e};
    as_status st = sweep_run(p, s->method, seed, 1, n, &record, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s, seed %" PRIu64, p->def->name, seed);
    double whole = regret[n - 1];
    t->sweeps++;
    t->trials += n;
    t->bounds += e.n_bounds;
    t->held += e.n_held;
    (void)fprintf(stderr, "%-22s seed %" PRIu64 ": bound held %3zu of %3zu", p->def->name, seed,
                  e.n_held, e.n_bounds);
    if (e.stopped_at > 0) {
        t->stopped++;
        t->saved += n - e.stopped_at;
        t->lost_sum += (e.regret_then - whole) / p->scale;
        t->worse += e.regret_then - whole > s->relative * p->scale;
        (void)fprintf(stderr, "; ended after %zu with regret %.3g, after %zu it is %.3g (%.2g)",
                      e.stopped_at, e.regret_then / p->scale, n, whole / p->scale,
                      (e.regret_then - whole) / p->scale);
    }
    (void)fputc('\n', stderr);
    (void)fflush(stdout);
    return AS_OK;
}

static bool is_listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return !list;
}

static as_status run_all(const struct settings *s, struct totals *t, struct as_err *err)
{
    as_status st = AS_OK;
    puts("problem,seed,completed,enough,bound,relative,regret,scale");
    for (size_t i = 0; i < problem_count() && st == AS_OK; i++) {
        AS_AUTO(problem_freep) struct problem *p = NULL;
        if (!is_listed(s->problems, problem_at(i)->name))
            continue;
        st = problem_open(problem_at(i), &p, err);
        if (st == AS_E_UNAVAILABLE) { /* a surrogate without its files */
            st = AS_OK;
            continue;
        }
        for (int64_t k = 0; k < s->seeds && st == AS_OK; k++)
            st = run_one(s, p, (uint64_t)(s->first_seed + k), t, err);
    }
    return st;
}

static void print_totals(const struct totals *t)
{
    double n = t->stopped ? (double)t->stopped : 1, all = t->trials ? (double)t->trials : 1;
    double bounds = t->bounds ? (double)t->bounds : 1;
    (void)fprintf(
        stderr,
        "%zu sweeps: %zu ended by the rule, which saved %.1f%% of all trials (%.1f a sweep "
        "that it ended); %.2g of the scale lost on average, more than the limit in %zu; "
        "the bound held in %.1f%% of %zu\n",
        t->sweeps, t->stopped, 100.0 * (double)t->saved / all, (double)t->saved / n,
        t->lost_sum / n, t->worse, 100.0 * (double)t->held / bounds, t->bounds);
}

int main(int argc, char **argv)
{
    struct settings s = {.seeds = 2,
                         .first_seed = 1,
                         .trials = 100,
                         .min_trials = 20,
                         .relative = 0.01,
                         .method = "gp"};
    const struct opt table[] = {
        {"seeds", 0, OPT_I64, &s.seeds, "N", NULL, "sweeps of each problem (2)"},
        {"first-seed", 0, OPT_I64, &s.first_seed, "N", NULL, "1"},
        {"trials", 0, OPT_I64, &s.trials, "N", NULL, "of each sweep (100)"},
        {"min-trials", 0, OPT_I64, &s.min_trials, "N", NULL, "the rule's (20)"},
        {"relative", 0, OPT_DOUBLE, &s.relative, "X", NULL, "the rule's limit (0.01)"},
        {"problems", 0, OPT_STRING, &s.problems, "A,B", NULL, "all"},
        {"method", 0, OPT_STRING, &s.method, "NAME", NULL, "gp"},
        {"help", 'h', OPT_FLAG, &s.help, NULL, NULL, "this text"},
        {0},
    };
    struct as_err err = {0};
    struct totals t = {0};
    int n_args = 0;
    as_status st = opt_parse(table, argc, argv, &n_args, &err);
    if (st == AS_OK && (n_args > 0 || s.seeds < 1 || s.trials < 1 || s.trials > 10000))
        st = as_fail(&err, AS_E_INVAL, "expected options alone, --seeds and --trials from 1");
    if (st < 0) {
        (void)fprintf(stderr, "search-ending: %s\n", err.msg);
        return EX_USAGE_STATUS;
    }
    if (s.help) {
        puts("search-ending: what limits.stop_when saves and loses");
        opt_help(table, stdout);
        return EXIT_SUCCESS;
    }
    st = run_all(&s, &t, &err);
    if (st < 0)
        (void)fprintf(stderr, "search-ending: %s\n", err.msg);
    else
        print_totals(&t);
    return st < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
