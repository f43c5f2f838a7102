#include "search/gp/free_numbers.h"

#include <math.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/gp/trust_region.h"
#include "search/problem/random_stream.h"

/* The constants are of decision 4040. */
#define ONE_OF 2 /* suggestions */
/* A number is free with a probability that falls with this power of its length scale. */
#define POWER 2.0
#define POWER_IN_BRANCH 1.0

static bool is_number(const struct encoded_param *p)
{
    return p->real >= 0;
}

static bool is_large_and_flat(const struct training_set *s)
{
    const struct encoding *e = s->enc;
    return e->n_varied > TRUST_REGION_DIMS && e->n_numeric > FREE_NUMBERS && e->n_category > 0 &&
           !e->has_conditions && s->spec->n_objectives == 1 && !s->spec->n_outcomes &&
           !s->spec->earlier && !s->rungs;
}

/* Take a number out of the draw. */
static size_t draw(double *weight, size_t n, struct rng *r)
{
    double sum = 0;
    size_t last = 0;
    for (size_t i = 0; i < n; i++)
        sum += weight[i];
    double place = rng_uniform(r) * sum;
    for (size_t i = 0; i < n; i++) {
        if (!(weight[i] > 0))
            continue;
        last = i;
        if ((place -= weight[i]) < 0)
            break;
    }
    weight[last] = 0;
    return last;
}

struct free_numbers free_numbers_draw(const struct training_set *s, const json_t *theta,
                                      uint64_t number, bool in_branch)
{
    struct free_numbers f = {0};
    const struct encoding *e = s->enc;
    double weight[SPACE_MAX_PARAMS] = {0}, log_length;
    struct rng r;
    rng_init(&r, s->spec->seed, number << 8 | SEARCH_DRAW_GP_FREE);
    if (!is_large_and_flat(s) || rng_below(&r, ONE_OF))
        return f;
    for (size_t i = 0; i < e->n; i++) {
        const struct encoded_param *p = &e->params[i];
        if (!is_number(p))
            continue;
        bool is_known = json_number_get(json_array_get(theta, (size_t)p->length), &log_length);
        weight[i] = is_known ? exp(-(in_branch ? POWER_IN_BRANCH : POWER) * log_length) : 1;
    }
    while (f.n < FREE_NUMBERS)
        f.params[f.n++] = draw(weight, e->n, &r);
    return f;
}

void free_numbers_box(const struct free_numbers *f, const struct training_set *s, size_t centre,
                      double *lower, double *upper)
{
    const double *point = training_set_point(s, centre);
    for (size_t i = 0; i < s->enc->n; i++) {
        bool is_fixed = is_number(&s->enc->params[i]);
        lower[i] = is_fixed ? point[i] : 0;
        upper[i] = is_fixed ? point[i] : 1;
    }
    for (size_t k = 0; k < f->n; k++) {
        lower[f->params[k]] = 0;
        upper[f->params[k]] = 1;
    }
}
