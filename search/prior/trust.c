/* Kendall's tau over pairs of results in O(n^2), which is bounded by TRUST_MOST = 200 results: past
 * that no prior has a weight. It is divided by its deviation under independence, so a few results
 * say little. Pairs of equal kinds (two failures) say nothing. Decision 4010 has the figures for
 * the weights. */
#include "search/prior/trust.h"

#include <math.h>
#include <string.h>

#include "search/prior/prior_dist.h"

#define PARAM_PRIORS                                                                               \
    SIZE_MAX /* the source that is the parameters' priors; else the earlier sweep */

/* A result: how bad its kind is, and its row. */
struct result {
    int class; /* 0: feasible, 1: breaks a bound, 2: failed */
    size_t row;
    double distance; /* from what is likely */
};

/* The distance from an earlier sweep, moved by shift (NULL: not). */
static double distance_moved(const struct training_set *s, size_t k, const double *point,
                             const double *shift, double *ret_slope)
{
    double moved[SPACE_MAX_PARAMS];
    for (size_t j = 0; j < s->enc->n; j++)
        moved[j] = point[j] + (shift ? shift[j] : 0);
    return warm_start_distance(s->spec->earlier, k, s->enc, moved, ret_slope);
}

static double distance_of(const struct training_set *s, size_t source, const double *shift,
                          const double *point)
{
    return source == PARAM_PRIORS ? prior_dist_distance(s->enc, point)
                                  : distance_moved(s, source, point, shift, NULL);
}

static size_t list_results(const struct training_set *s, size_t rows, size_t source,
                           const double *shift, struct result *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n && i < rows && n < TRUST_MOST; i++) {
        if (s->state[i] == OBSERVED_PENDING || s->state[i] == OBSERVED_PARTIAL)
            continue;
        int class = s->feasible[i] ? 0 : s->state[i] == OBSERVED_COMPLETED ? 1 : 2;
        double distance = distance_of(s, source, shift, training_set_point(s, i));
        ret[n++] = (struct result){class, i, distance};
    }
    return n;
}

/* 1 if a is better than b, -1 if it is worse, 0 if neither. */
static int compare(const struct training_set *s, const struct result *a, const struct result *b)
{
    size_t m = s->spec->n_objectives;
    bool better = false, worse = false;
    if (a->class != b->class)
        return a->class < b->class ? 1 : -1;
    for (size_t k = 0; k < m && a->class == 0; k++) {
        double left = s->costs[a->row * m + k], right = s->costs[b->row * m + k];
        better |= left < right;
        worse |= left > right;
    }
    return better == worse ? 0 : better ? 1 : -1;
}

/* Kendall's correlation in units of its deviation; INFINITY with too few results. */
static double correlate(const struct training_set *s, size_t rows, size_t source,
                        const double *shift)
{
    struct result list[TRUST_MOST];
    int sum = 0;
    size_t n = list_results(s, rows, source, shift, list);
    if (n < TRUST_LEAST)
        return INFINITY;
    for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            double off = list[j].distance - list[i].distance;
            sum += compare(s, &list[i], &list[j]) * ((off > 0) - (off < 0));
        }
    double pairs = (double)n * (double)(n - 1) / 2;
    return sum / pairs / sqrt((double)(2 * (2 * n + 5)) / (double)(9 * n * (n - 1)));
}

double trust_of(const struct training_set *s, size_t rows)
{
    if (!prior_dist_exists(s->spec->space))
        return 0;
    return fmin(1, fmax(0, (1 + correlate(s, rows, PARAM_PRIORS, NULL)) / 2));
}

double trust_of_warm_start(const struct training_set *s, size_t k)
{
    const struct warm_start *w = s->spec->earlier;
    return w && w->sweeps[k].n ? fmin(1, fmax(0, correlate(s, s->n, k, NULL) - 1)) : 0;
}

bool trust_is_confirmed(const struct training_set *s)
{
    if (s->n_completed + s->n_failed < TRUST_LEAST)
        return false;
    for (size_t k = 0; s->spec->earlier && k < s->spec->earlier->n; k++)
        if (trust_of_warm_start(s, k) >= 1)
            return true;
    return trust_of(s, s->n) >= 1;
}

struct prior_weights trust_weights(const struct training_set *s)
{
    size_t n = s->n_completed + s->n_failed;
    struct prior_weights w = {0};
    if (n >= TRUST_MOST)
        return w;
    w.params = trust_of(s, s->n) * prior_dist_weight(n);
    w.any = w.params > 0;
    for (size_t k = 0; s->spec->earlier && k < s->spec->earlier->n; k++) {
        w.earlier[k] = trust_of_warm_start(s, k) * prior_dist_weight(n);
        w.any |= w.earlier[k] > 0;
    }
    return w;
}

void trust_shift(struct prior_weights *w, const struct training_set *s, size_t k,
                 const double *shift)
{
    size_t n = s->n_completed + s->n_failed;
    if (n >= TRUST_MOST || !s->spec->earlier->sweeps[k].n)
        return;
    memcpy(w->shift[k], shift, s->enc->n * sizeof *shift);
    w->earlier[k] = fmin(1, fmax(0, correlate(s, s->n, k, shift) - 1)) * prior_dist_weight(n);
    w->any |= w->earlier[k] > 0;
}

double trust_log(const struct prior_weights *w, const struct training_set *s, const double *point,
                 double *ret_slope)
{
    double sum = w->params * prior_dist_log(s->enc, point, ret_slope), slope[SPACE_MAX_PARAMS];
    for (size_t j = 0; ret_slope && j < s->enc->n; j++)
        ret_slope[j] *= w->params;
    for (size_t k = 0; k < WARM_START_SWEEPS; k++) {
        if (!(w->earlier[k] > 0))
            continue;
        double off = distance_moved(s, k, point, w->shift[k], ret_slope ? slope : NULL);
        double share = exp(-off / PRIOR_DIST_FLOOR);
        sum -= w->earlier[k] * PRIOR_DIST_FLOOR * (1 - share);
        for (size_t j = 0; ret_slope && j < s->enc->n; j++)
            ret_slope[j] -= w->earlier[k] * share * slope[j];
    }
    return sum;
}
