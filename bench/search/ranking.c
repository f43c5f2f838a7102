/* Statistics of methods on problems (ranking.h).
 *
 * All cells are collected first: a cell counts only if every method has it, so that each statistic
 * compares the same seeds. Regrets are stored twice, as measured and with the floor. Ranks and
 * ratios use the floor, because digits below it are numerical noise.
 *
 * Intervals are bootstrap percentiles. Problems are drawn first and seeds within each second,
 * because the variation between problems is larger than between seeds. The draws have a fixed key,
 * so that a report can be repeated. */
#include "bench/search/ranking.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

#define DRAWS 2000
#define NO_SUCCESS 10.0 /* scales */

struct ranking {
    const struct ranking_spec *spec;
    size_t *n;      /* seeds that count, by problem */
    double *raw;    /* regret, [problem][method][seed], the first n seeds of each */
    double *regret; /* with the floor; this and the next have the same shape */
    double *rank;
};

void ranking_free(struct ranking *r)
{
    if (r == NULL)
        return;
    free(r->n);
    free(r->raw);
    free(r->regret);
    free(r->rank);
    free(r);
}

/* Where (problem, method)'s seeds begin. */
static size_t at(const struct ranking *r, size_t problem, size_t method)
{
    return (problem * r->spec->n_methods + method) * r->spec->seeds;
}

/* Rank the methods in one cell; tied methods share the mean of their places. */
static void rank_cell(struct ranking *r, size_t problem, size_t seed)
{
    size_t n = r->spec->n_methods;
    for (size_t a = 0; a < n; a++) {
        double mine = r->regret[at(r, problem, a) + seed], below = 0, equal = 0;
        for (size_t b = 0; b < n; b++) {
            double other = r->regret[at(r, problem, b) + seed];
            below += other < mine;
            equal += other == mine; /* itself too */
        }
        r->rank[at(r, problem, a) + seed] = below + (equal + 1) / 2;
    }
}

/* Count one cell if every method has it. */
static void take_cell(struct ranking *r, size_t problem, uint64_t seed, size_t trials)
{
    const struct ranking_spec *s = r->spec;
    const struct problem *p = s->problems[problem];
    size_t place = r->n[problem];
    for (size_t m = 0; m < s->n_methods; m++) {
        const struct trace *t =
            traces_find(s->traces, p->def->name, s->methods[m].name, s->methods[m].slots, seed);
        if (t == NULL || t->n < trials)
            return;
        double regret = t->regret[trials - 1];
        if (!isfinite(regret))
            regret = NO_SUCCESS * p->scale;
        r->raw[at(r, problem, m) + place] =
            fmax(regret, 0); /* an optimum is known to 1e-12 or so */
        r->regret[at(r, problem, m) + place] = fmax(regret, RANKING_FLOOR * p->scale);
    }
    rank_cell(r, problem, place);
    r->n[problem]++;
}

as_status ranking_create(const struct ranking_spec *spec, size_t trials, struct ranking **ret,
                         struct as_err *err)
{
    AS_AUTO(ranking_freep) struct ranking *r = as_calloc(1, sizeof *r);
    if (r == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    r->spec = spec;
    r->n = as_calloc(spec->n_problems, sizeof *r->n);
    r->raw = as_calloc(spec->n_problems * spec->n_methods, spec->seeds * sizeof(double));
    r->regret = as_calloc(spec->n_problems * spec->n_methods, spec->seeds * sizeof(double));
    r->rank = as_calloc(spec->n_problems * spec->n_methods, spec->seeds * sizeof(double));
    if (r->n == NULL || r->raw == NULL || r->regret == NULL || r->rank == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t i = 0; i < spec->n_problems; i++)
        for (size_t s = 0; s < spec->seeds; s++)
            take_cell(r, i, spec->first_seed + s, trials);
    *ret = as_steal(r);
    return AS_OK;
}

size_t ranking_seeds(const struct ranking *r, size_t problem)
{
    return r->n[problem];
}

size_t ranking_problems(const struct ranking *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->spec->n_problems; i++)
        n += r->n[i] > 0;
    return n;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between the neighbours; v is sorted, n > 0. */
static double quantile(const double *v, size_t n, double q)
{
    double place = q * (double)(n - 1);
    size_t i = (size_t)place;
    return i + 1 < n ? v[i] + (place - (double)i) * (v[i + 1] - v[i]) : v[i];
}

struct interval ranking_regret(const struct ranking *r, size_t problem, size_t method)
{
    size_t n = r->n[problem];
    AS_AUTO(as_freep) double *v = as_calloc(n, sizeof(double));
    if (v == NULL || n == 0)
        return (struct interval){NAN, NAN, NAN};
    for (size_t i = 0; i < n; i++)
        v[i] = r->raw[at(r, problem, method) + i];
    qsort(v, n, sizeof *v, by_size);
    return (struct interval){quantile(v, n, 0.5), quantile(v, n, 0.25), quantile(v, n, 0.75)};
}

int ranking_compare(const struct ranking *r, size_t problem, size_t a, size_t b)
{
    double floor = RANKING_FLOOR * r->spec->problems[problem]->scale;
    double x = fmax(ranking_regret(r, problem, a).value, floor);
    double y = fmax(ranking_regret(r, problem, b).value, floor);
    return (x > y) - (x < y);
}

/* The averaged quantity: ranks of method a, or logarithms of the ratio of a to b. */
struct question {
    size_t a, b;
    bool is_ratio;
    double limit; /* of a problem's |log ratio| */
};

/* The average over one problem: over its seeds, or over a bootstrap draw of them. */
static double answer_one(const struct ranking *r, const struct question *q, size_t problem,
                         struct rng *draw)
{
    size_t n = r->n[problem];
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        size_t s = draw != NULL ? (size_t)rng_below(draw, n) : i;
        if (!q->is_ratio) {
            sum += r->rank[at(r, problem, q->a) + s];
            continue;
        }
        /* seeds of two methods are not paired */
        size_t o = draw != NULL ? (size_t)rng_below(draw, n) : i;
        sum += log(r->regret[at(r, problem, q->a) + s] / r->regret[at(r, problem, q->b) + o]);
    }
    sum /= (double)n;
    return q->is_ratio ? fmin(fmax(sum, -q->limit), q->limit) : sum;
}

static double answer_all(const struct ranking *r, const struct question *q, const size_t *problems,
                         size_t n, struct rng *draw)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        size_t p = problems[draw != NULL ? rng_below(draw, n) : i];
        sum += answer_one(r, q, p, draw);
    }
    return sum / (double)n;
}

static struct interval answer(const struct ranking *r, const struct question *q)
{
    size_t n = 0;
    AS_AUTO(as_freep) size_t *problems = as_calloc(r->spec->n_problems, sizeof *problems);
    AS_AUTO(as_freep) double *draws = as_calloc(DRAWS, sizeof *draws);
    for (size_t i = 0; problems != NULL && i < r->spec->n_problems; i++)
        if (r->n[i] > 0)
            problems[n++] = i;
    if (n == 0 || draws == NULL)
        return (struct interval){NAN, NAN, NAN};
    struct rng draw;
    rng_init(&draw, 1, 0);
    for (size_t i = 0; i < DRAWS; i++)
        draws[i] = answer_all(r, q, problems, n, &draw);
    qsort(draws, DRAWS, sizeof *draws, by_size);
    return (struct interval){answer_all(r, q, problems, n, NULL), quantile(draws, DRAWS, 0.025),
                             quantile(draws, DRAWS, 0.975)};
}

struct interval ranking_mean_rank(const struct ranking *r, size_t method)
{
    return answer(r, &(struct question){.a = method});
}

struct interval ranking_ratio(const struct ranking *r, size_t a, size_t b, bool winsorised)
{
    struct interval log_ratio =
        answer(r, &(struct question){.a = a,
                                     .b = b,
                                     .is_ratio = true,
                                     .limit = winsorised ? log(RANKING_WINSOR) : INFINITY});
    return (struct interval){exp(log_ratio.value), exp(log_ratio.low), exp(log_ratio.high)};
}

void ranking_wins(const struct ranking *r, size_t a, size_t b, size_t *ret_wins, size_t *ret_ties)
{
    *ret_wins = *ret_ties = 0;
    for (size_t i = 0; i < r->spec->n_problems; i++) {
        if (r->n[i] == 0)
            continue;
        int order = ranking_compare(r, i, a, b);
        *ret_wins += order < 0;
        *ret_ties += order == 0;
    }
}
