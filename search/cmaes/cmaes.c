/* The trials of a sweep as generations of a distribution. distribution.c has the adaptation of
 * numbers; here are choices, levels, conditions, restarts, and what a generation is. */
#include "search/cmaes/cmaes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/cmaes/distribution.h"
#include "search/population/design.h"
#include "search/population/population.h"
#include "search/prior/prior_dist.h"
#include "search/prior/trust.h"
#include "search/problem/explain.h"
#include "search/regression/special.h"

#define SIGMA_FIRST 0.25
#define SIGMA_RESTART 0.3
#define LAMBDA_GROWS 2
#define LAMBDA_MOST_TIMES 16
#define STEP_LEAST 1e-6 /* a run whose largest deviation is smaller has ended */
#define BELIEVED 2.0    /* a start within this many deviations of a prior's mean from_prior it, */
#define NARROWEST 0.1   /* down to this share of the first deviation */
#define BOUND_TRIES 20
#define CHOICE_MARGIN 0.73 /* CatCMA, section 4.3 */

struct strategy {
    const struct training_set *set; /* borrowed */
    size_t d, n_choices;
    size_t *number;  /* [d]: the parameters that are numbers */
    size_t *choice;  /* [n_choices] */
    double **chance; /* [n_choices]: the probability of each value */
    double *least;   /* [d]: the least deviations */
    bool *active;    /* [parameters] */
    struct distribution now;
    size_t restarts, generation; /* of the run */
    double trust;                /* in the priors, by the design's results */
    size_t best, since; /* rank of the run's best trial, and the generations since it was found */
};

static void strategy_free(void *self)
{
    struct strategy *s = self;
    if (!s)
        return;
    for (size_t k = 0; s->chance && k < s->n_choices; k++)
        free(s->chance[k]);
    distribution_done(&s->now);
    free(s->number);
    free(s->choice);
    free(s->chance);
    free(s->least);
    free(s->active);
    free(s);
}

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
}

/* ---- the parameters ---- */

static as_status list_parameters(struct strategy *s, struct as_err *err)
{
    const struct encoding *e = s->set->enc;
    s->number = as_calloc(e->n, sizeof *s->number);
    s->choice = as_calloc(e->n, sizeof *s->choice);
    s->chance = as_calloc(e->n, sizeof *s->chance);
    s->active = as_calloc(e->n, sizeof *s->active);
    s->least = as_calloc(e->n, sizeof *s->least);
    if (!s->number || !s->choice || !s->chance || !s->active || !s->least)
        return out_of_memory(err);
    for (size_t j = 0; j < e->n; j++) {
        size_t levels = (size_t)e->params[j].levels;
        if (e->params[j].kind == ENCODED_CONTINUOUS || e->params[j].kind == ENCODED_LEVELS)
            s->number[s->d++] = j;
        if (e->params[j].kind != ENCODED_CHOICE)
            continue;
        s->choice[s->n_choices++] = j;
        if (!(s->chance[s->n_choices - 1] = as_calloc(levels, sizeof(double))))
            return out_of_memory(err);
    }
    return AS_OK;
}

/* Every value as likely, but for the one that the run begins at. A prior that is trusted counts for
 * half in the first run. */
static void reset_choices(struct strategy *s, const double *at)
{
    const struct encoding *e = s->set->enc;
    for (size_t k = 0; k < s->n_choices; k++) {
        size_t j = s->choice[k], levels = (size_t)e->params[j].levels;
        double share = s->restarts == 0 && e->space->params[j].prior ? 0.5 * s->trust : 0;
        for (size_t v = 0; v < levels; v++) {
            double likely =
                share > 0 ? 1 - share + share * exp(prior_dist_density(e, j, (double)v)) : 1;
            s->chance[k][v] = likely * (at ? 0.5 : 1.0) / (double)levels;
        }
        if (at)
            s->chance[k][(size_t)at[j]] += 0.5;
    }
}

static as_status begin_run(struct strategy *s, const double *at, double sigma, size_t lambda,
                           struct as_err *err)
{
    AS_AUTO(as_freep) double *mean = as_calloc(s->d + 1, sizeof *mean);
    struct rng r;
    if (!mean)
        return out_of_memory(err);
    rng_init(&r, s->set->spec->seed, s->restarts << 8 | SEARCH_DRAW_CMAES_START);
    for (size_t i = 0; i < s->d; i++)
        mean[i] = at ? at[s->number[i]] : rng_uniform(&r);
    reset_choices(s, at);
    distribution_done(&s->now);
    s->generation = s->since = 0;
    s->best = SIZE_MAX;
    return distribution_make(s->d, s->d <= CMAES_FULL_MOST, lambda, sigma, mean, &s->now, err);
}

/* Where the first run begins at a place that a prior finds likely, the prior says how far it
 * looks. */
static void believe_deviations(struct strategy *s, const double *at)
{
    const struct encoding *e = s->set->enc;
    for (size_t k = 0; at && k < s->d; k++) {
        const struct space_param *p = &e->space->params[s->number[k]];
        if (!p->prior || param_is_choice(p))
            continue;
        struct prior_dist_normal b = prior_dist_normal(p);
        double narrow = fmin(1, fmax(NARROWEST, b.deviation / SIGMA_FIRST));
        if (fabs(at[s->number[k]] - b.mean) <= BELIEVED * b.deviation)
            distribution_scale(&s->now, k, pow(narrow, s->trust));
    }
}

/* ---- a generation ---- */

static void adapt_choices(struct strategy *s, const size_t *rows)
{
    const struct encoding *e = s->set->enc;
    const struct distribution *now = &s->now;
    for (size_t k = 0; k < s->n_choices; k++) {
        size_t j = s->choice[k], levels = (size_t)e->params[j].levels;
        double rate = now->mu_eff / (2 * ((double)levels + now->mu_eff)), weight = 0;
        double margin = (1 - pow(CHOICE_MARGIN, 1 / (double)s->n_choices)) / (double)(levels - 1);
        double sum = 0, *chance = s->chance[k];
        for (size_t i = 0; i < now->mu; i++) {
            const double *point = training_set_point(s->set, rows[i]);
            encoding_active(e, point, s->active);
            if (!s->active[j])
                continue;
            chance[(size_t)point[j]] += rate * now->weights[i];
            weight += rate * now->weights[i];
        }
        for (size_t v = 0; v < levels; v++)
            sum += chance[v] = fmax(chance[v], margin * (1 + weight));
        for (size_t v = 0; v < levels; v++)
            chance[v] /= sum;
    }
}

/* The better half of the rows, which are the best first. An inactive parameter stays at the
 * mean. */
static as_status adapt(struct strategy *s, const size_t *rows, struct as_err *err)
{
    AS_AUTO(as_freep) double *best = as_calloc(s->now.mu, (s->d + 1) * sizeof *best);
    if (!best)
        return out_of_memory(err);
    for (size_t i = 0; i < s->now.mu; i++) {
        const double *point = training_set_point(s->set, rows[i]);
        encoding_active(s->set->enc, point, s->active);
        for (size_t k = 0; k < s->d; k++)
            best[i * s->d + k] = s->active[s->number[k]] ? point[s->number[k]] : s->now.mean[k];
    }
    adapt_choices(s, rows);
    distribution_update(&s->now, best);
    for (size_t k = 0; k < s->d; k++)
        s->now.mean[k] = fmin(1, fmax(0, s->now.mean[k]));
    s->generation++;
    return AS_OK;
}

static bool has_ended(const struct strategy *s)
{
    double widest = 0, patience = 10 + ceil(30 * (double)s->d / (double)s->now.lambda);
    for (size_t k = 0; k < s->d; k++)
        widest = fmax(widest, distribution_deviation(&s->now, k));
    return (double)s->since > patience || (s->d && widest < STEP_LEAST);
}

static as_status take_generation(struct strategy *s, size_t *rows, const size_t *rank,
                                 struct as_err *err)
{
    for (size_t i = 1; i < s->now.lambda; i++) /* sort by rank; they are few */
        for (size_t k = i; k > 0 && rank[rows[k]] < rank[rows[k - 1]]; k--) {
            size_t row = rows[k];
            rows[k] = rows[k - 1];
            rows[k - 1] = row;
        }
    s->since = rank[rows[0]] < s->best ? 0 : s->since + 1;
    s->best = rank[rows[0]] < s->best ? rank[rows[0]] : s->best;
    as_status st = adapt(s, rows, err);
    if (st < 0 || !has_ended(s))
        return st;
    size_t first = distribution_lambda(s->d + s->n_choices), lambda = LAMBDA_GROWS * s->now.lambda;
    if (lambda > LAMBDA_MOST_TIMES * first)
        lambda = first;
    s->restarts++;
    return begin_run(s, NULL, SIGMA_RESTART, lambda, err);
}

/* All generations, from the first trial after the design. */
static as_status replay_trials(struct strategy *s, const struct population *p, struct as_err *err)
{
    const struct training_set *set = p->set;
    size_t design = design_size(set), n = 0, best = set->n;
    AS_AUTO(as_freep) size_t *rank = as_calloc(set->n, sizeof *rank);
    AS_AUTO(as_freep) size_t *rows = as_calloc(set->n + 1, sizeof *rows);
    if (!rank || !rows)
        return out_of_memory(err);
    for (size_t i = 0; i < p->n; i++)
        rank[p->order[i]] = i;
    for (size_t i = 0; i < set->n && i < design; i++)
        if (set->state[i] != OBSERVED_PENDING && (best == set->n || rank[i] < rank[best]))
            best = i;
    s->trust = trust_of(set, design);
    as_status st = begin_run(s, best < set->n ? training_set_point(set, best) : NULL, SIGMA_FIRST,
                             distribution_lambda(s->d + s->n_choices), err);
    if (st == AS_OK)
        believe_deviations(s, best < set->n ? training_set_point(set, best) : NULL);
    for (size_t i = design; i < set->n && st == AS_OK; i++) {
        if (set->state[i] == OBSERVED_PENDING)
            continue;
        rows[n++] = i;
        if (n < s->now.lambda)
            continue;
        n = 0;
        st = take_generation(s, rows, rank, err);
    }
    return st;
}

/* The least deviation of a level is one with which a draw leaves its mean's level once in
 * (parameters x generation size). */
static void set_margins(struct strategy *s)
{
    const struct encoding *e = s->set->enc;
    double tail = 1 / (double)(s->d * s->now.lambda + 1);
    double reach = -gp_norm_quantile(tail / 2);
    for (size_t k = 0; k < s->d; k++) {
        size_t j = s->number[k];
        s->least[k] = 0;
        if (e->params[j].kind != ENCODED_LEVELS)
            continue;
        uint64_t level = encoding_level(e, j, s->now.mean[k]), other = level ? level - 1 : 1;
        double gap = fabs(encoding_place(e, j, level) - encoding_place(e, j, other));
        s->least[k] = gap / 2 / reach;
    }
}

static as_status cmaes_begin(const struct population *p, void **ret_self, struct as_err *err)
{
    struct strategy *s = as_calloc(1, sizeof *s);
    if (!s)
        return out_of_memory(err);
    s->set = p->set;
    as_status st = list_parameters(s, err);
    if (st == AS_OK)
        st = replay_trials(s, p, err);
    if (st < 0) {
        strategy_free(s);
        return st;
    }
    set_margins(s);
    *ret_self = s;
    return AS_OK;
}

/* ---- a proposal ---- */

static double draw_choice(const double *chance, size_t levels, struct rng *r)
{
    double u = rng_uniform(r), sum = 0;
    for (size_t v = 0; v + 1 < levels; v++)
        if ((sum += chance[v]) > u)
            return (double)v;
    return (double)(levels - 1);
}

static bool is_inside(const double *x, size_t d)
{
    for (size_t k = 0; k < d; k++)
        if (x[k] < 0 || x[k] > 1)
            return false;
    return true;
}

/* Draws out of bounds are made again, as a truncated distribution; in many dimensions that may
 * last, and the last one is moved to the bounds. */
static as_status draw_numbers(const struct strategy *s, struct rng *r, double *point,
                              struct as_err *err)
{
    AS_AUTO(as_freep) double *x = as_calloc(s->d + 1, sizeof *x);
    if (!x)
        return out_of_memory(err);
    for (size_t i = 0; i < BOUND_TRIES; i++) {
        distribution_draw(&s->now, r, s->least, x);
        if (is_inside(x, s->d))
            break;
    }
    for (size_t k = 0; k < s->d; k++)
        point[s->number[k]] = fmin(1, fmax(0, x[k]));
    return AS_OK;
}

static as_status cmaes_propose(void *self, const struct population *p, struct rng *r,
                               double *ret_point, json_t *reason, struct as_err *err)
{
    const struct strategy *s = self;
    (void)p;
    memset(ret_point, 0, s->set->enc->n * sizeof *ret_point);
    for (size_t k = 0; k < s->n_choices; k++)
        ret_point[s->choice[k]] =
            draw_choice(s->chance[k], (size_t)s->set->enc->params[s->choice[k]].levels, r);
    as_status st = draw_numbers(s, r, ret_point, err);
    if (st < 0)
        return st;
    int bad = json_object_set_new(reason, "generation", json_integer((json_int_t)s->generation));
    bad |= json_object_set_new(reason, "restarts", json_integer((json_int_t)s->restarts));
    bad |= json_object_set_new(reason, "step", json_number_new(s->now.sigma));
    return bad ? as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason") : AS_OK;
}

static void cmaes_explain(const json_t *reason, struct str *b)
{
    double step;
    int64_t restarts = explain_count(reason, "restarts");
    str_printf(b, "drawn after %" PRId64 " generations", explain_count(reason, "generation"));
    if (json_number_get(json_object_get(reason, "step"), &step))
        str_printf(b, ", in steps of %.2g of the range", step);
    if (restarts > 0)
        str_printf(b, ", restarted %" PRId64 " times", restarts);
}

static const struct population_method cmaes = {.purpose = SEARCH_DRAW_CMAES,
                                               .begin = cmaes_begin,
                                               .propose = cmaes_propose,
                                               .end = strategy_free,
                                               .explain = cmaes_explain};

const struct search_method search_cmaes = POPULATION_METHOD("cmaes", cmaes);
