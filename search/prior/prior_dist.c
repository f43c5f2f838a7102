/* Places of a number are computed here from its value, by the same formulas as encoding.h: between
 * the lowest and the highest level, on the parameter's scale. */
#include "search/prior/prior_dist.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/problem/random_stream.h"
#include "search/regression/special.h"
#include "search/space/param_prior.h"

/* Limits of a deviation as a share of the range: what is beyond them is a point, or flat. */
#define NARROWEST 1e-6
#define WIDEST 1e3

bool prior_dist_exists(const struct space *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->params[i].prior)
            return true;
    return false;
}

bool prior_dist_draws_design(uint64_t index)
{
    return index % 2 == 1;
}

bool prior_dist_draws_random(uint64_t seed, uint64_t index)
{
    struct rng r;
    rng_init(&r, seed, index << 8 | SEARCH_DRAW_PRIOR);
    return rng_uniform(&r) < prior_dist_share(index);
}

/* ---- numbers ---- */

struct range {
    double low, high;
    bool is_log;
};

static double number_of(const struct space_param *p, union param_value v)
{
    return p->kind == PARAM_INT ? (double)v.integer : v.real;
}

static struct range range_of(const struct space_param *p)
{
    uint64_t n = param_levels(p);
    struct range r = {p->real.min, p->real.max, p->scale == SCALE_LOG};
    if (n > 0) {
        r.low = number_of(p, param_level(p, 0));
        r.high = number_of(p, param_level(p, n - 1));
    }
    return r;
}

struct prior_dist_normal prior_dist_normal(const struct space_param *p)
{
    struct range r = range_of(p);
    const struct param_prior *b = p->prior;
    double width = r.is_log ? log(r.high) - log(r.low) : r.high - r.low;
    double from = r.is_log ? log(b->mean) - log(r.low) : b->mean - r.low;
    if (!(width > 0))
        return (struct prior_dist_normal){0.5, 1};
    return (struct prior_dist_normal){fmin(1, from / width),
                                      fmin(fmax(b->deviation / width, NARROWEST), WIDEST)};
}

/* The probability of [0, 1], and the place at quantile u of what is left. */
static double inside(struct prior_dist_normal b)
{
    return gp_norm_cdf((1 - b.mean) / b.deviation) - gp_norm_cdf(-b.mean / b.deviation);
}

static double place_at(struct prior_dist_normal b, double u)
{
    double low = gp_norm_cdf(-b.mean / b.deviation);
    double place = b.mean + b.deviation * gp_norm_quantile(low + u * inside(b));
    return fmin(1, fmax(0, place)); /* an infinite one is an end */
}

static size_t choice_at(const struct space_param *p, double u)
{
    double sum = 0, at = 0;
    for (size_t k = 0; k < p->n_values; k++)
        sum += p->prior->weights[k];
    for (size_t k = 0; k + 1 < p->n_values; k++)
        if ((at += p->prior->weights[k]) > u * sum)
            return k;
    return p->n_values - 1;
}

union param_value prior_dist_value(const struct space_param *p, double u)
{
    if (param_is_choice(p))
        return (union param_value){.choice = choice_at(p, u)};
    struct range r = range_of(p);
    double place = place_at(prior_dist_normal(p), u);
    uint64_t n = param_levels(p);
    if (n == 0)
        return param_decode(p, place);
    double v = r.is_log ? r.low * exp(place * (log(r.high) - log(r.low)))
                        : r.low + place * (r.high - r.low);
    double step = p->kind == PARAM_INT ? (double)p->integer.step : p->real.step;
    double k = fmax(round((v - r.low) / step), 0);
    return param_level(p, k < (double)(n - 1) ? (uint64_t)k : n - 1);
}

/* ---- points ---- */

static bool counts(const struct encoding *e, size_t i)
{
    return e->space->params[i].prior && e->params[i].kind != ENCODED_CONSTANT;
}

double prior_dist_place(const struct encoding *e, size_t i, double u)
{
    const struct space_param *p = &e->space->params[i];
    if (e->params[i].kind == ENCODED_CONSTANT)
        return 0;
    if (e->params[i].kind == ENCODED_CONTINUOUS)
        return place_at(prior_dist_normal(p), u);
    return encoding_place(e, i, param_level_of(p, prior_dist_value(p, u)));
}

static double heaviest(const struct space_param *p, size_t *ret)
{
    size_t best = 0;
    for (size_t k = 1; k < p->n_values; k++)
        if (p->prior->weights[k] > p->prior->weights[best])
            best = k;
    if (ret)
        *ret = best;
    return p->prior->weights[best];
}

double prior_dist_mode(const struct encoding *e, size_t i)
{
    const struct space_param *p = &e->space->params[i];
    size_t best = 0;
    if (e->params[i].kind == ENCODED_CONSTANT)
        return 0;
    if (!param_is_choice(p))
        return prior_dist_normal(p).mean;
    (void)heaviest(p, &best);
    return encoding_place(e, i, best);
}

/* The number of the value of a choice or an ordinal. */
static size_t choice_of(const struct encoding *e, size_t i, double place)
{
    return (size_t)encoding_level(e, i, place);
}

double prior_dist_density(const struct encoding *e, size_t i, double place)
{
    const struct space_param *p = &e->space->params[i];
    if (!counts(e, i))
        return 0;
    if (param_is_choice(p)) {
        double sum = 0;
        for (size_t k = 0; k < p->n_values; k++)
            sum += p->prior->weights[k];
        return log(p->prior->weights[choice_of(e, i, place)] * (double)p->n_values / sum);
    }
    struct prior_dist_normal b = prior_dist_normal(p);
    double z = (place - b.mean) / b.deviation;
    return -0.5 * z * z - 0.91893853320467274178 - log(b.deviation * inside(b));
}

double prior_dist_share(uint64_t n)
{
    return PRIOR_DIST_BETA / (PRIOR_DIST_BETA + (double)n + 1);
}

double prior_dist_weight(size_t n)
{
    double results = (double)(n > 0 ? n : 1);
    return PRIOR_DIST_BETA / results * fmin(1, PRIOR_DIST_BETA / results);
}

/* Minus the log of one prior relative to its maximum, and its slope. */
static double distance(const struct encoding *e, size_t i, double place, double *ret_slope)
{
    const struct space_param *p = &e->space->params[i];
    *ret_slope = 0;
    if (param_is_choice(p))
        return log(heaviest(p, NULL) / p->prior->weights[choice_of(e, i, place)]);
    struct prior_dist_normal b = prior_dist_normal(p);
    double z = (place - b.mean) / b.deviation;
    *ret_slope = z / b.deviation;
    return 0.5 * z * z;
}

static double sum_distances(const struct encoding *e, const double *point, double *ret_slope)
{
    bool active[SPACE_MAX_PARAMS];
    double sum = 0;
    encoding_active(e, point, active);
    if (ret_slope)
        memset(ret_slope, 0, e->n * sizeof *ret_slope);
    for (size_t i = 0; i < e->n; i++) {
        double slope;
        if (!active[i] || !counts(e, i))
            continue;
        sum += distance(e, i, point[i], &slope);
        if (ret_slope)
            ret_slope[i] = slope;
    }
    return sum;
}

double prior_dist_distance(const struct encoding *e, const double *point)
{
    return sum_distances(e, point, NULL);
}

/* -c (1 - exp(-s / c)): near 0 it is -s. */
double prior_dist_log(const struct encoding *e, const double *point, double *ret_slope)
{
    double share = exp(-sum_distances(e, point, ret_slope) / PRIOR_DIST_FLOOR);
    for (size_t i = 0; ret_slope && i < e->n; i++)
        ret_slope[i] *= -share;
    return -PRIOR_DIST_FLOOR * (1 - share);
}
