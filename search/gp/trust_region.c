/* The counters and the box. */
#include "search/gp/trust_region.h"

#include <math.h>

/* The lengths and counters are TuRBO-1's own (trust_region.h names the paper). */
#define LENGTH_FIRST 0.8
#define LENGTH_MOST 1.6
#define LENGTH_LEAST 0x1p-7
#define SUCCESSES 3
#define FAILURES_LEAST 4
#define PROGRESS 1e-3 /* of |best|: a smaller gain is no success */

struct trust_region trust_region_read(const json_t *state)
{
    struct trust_region t = {.best = INFINITY};
    double length = json_number_value(json_object_get(state, "length"));
    json_int_t successes = json_integer_value(json_object_get(state, "successes"));
    json_int_t failures = json_integer_value(json_object_get(state, "failures"));
    json_int_t seen = json_integer_value(json_object_get(state, "seen"));
    const json_t *best = json_object_get(state, "best");
    if (!(length >= LENGTH_LEAST && length <= LENGTH_MOST) || successes < 0 || failures < 0 ||
        seen < 0 || !json_is_number(best))
        return t;
    t = (struct trust_region){.is_on = true,
                              .length = length,
                              .successes = (size_t)successes,
                              .failures = (size_t)failures,
                              .seen = (size_t)seen,
                              .best = json_number_value(best)};
    return t;
}

json_t *trust_region_write(const struct trust_region *t)
{
    if (!t->is_on)
        return json_object();
    return json_pack("{s:f, s:I, s:I, s:I, s:f}", "length", t->length, "successes",
                     (json_int_t)t->successes, "failures", (json_int_t)t->failures, "seen",
                     (json_int_t)t->seen, "best", t->best);
}

static void count_results(struct trust_region *t, const struct training_set *s, size_t fresh,
                          double best)
{
    size_t patience = s->enc->n_varied > FAILURES_LEAST ? s->enc->n_varied : FAILURES_LEAST;
    bool success = best < t->best - PROGRESS * fabs(t->best);
    t->successes = success ? t->successes + 1 : 0;
    t->failures = success ? 0 : t->failures + fresh;
    if (t->successes >= SUCCESSES) {
        t->length = fmin(LENGTH_MOST, 2 * t->length);
        t->successes = 0;
    } else if (t->failures >= patience) {
        t->length /= 2;
        t->failures = 0;
    }
    t->best = fmin(t->best, best);
    if (t->length < LENGTH_LEAST)
        *t = (struct trust_region){.best = INFINITY};
}

void trust_region_update(struct trust_region *t, const struct training_set *s)
{
    size_t results = s->n_completed + s->n_failed;
    bool offered = s->enc->n_varied > TRUST_REGION_DIMS && s->spec->n_objectives == 1 &&
                   s->best != TRAINING_SET_NONE;
    if (!offered) {
        *t = (struct trust_region){.best = INFINITY};
        return;
    }
    double best = s->costs[s->best];
    if (!t->is_on) {
        if (s->stagnant)
            *t = (struct trust_region){
                .is_on = true, .length = LENGTH_FIRST, .seen = results, .best = best};
        return;
    }
    if (results > t->seen)
        count_results(t, s, results - t->seen, best);
    t->seen = results;
}

void trust_region_box(const struct trust_region *t, const struct training_set *s,
                      const struct gp_model *m, double *lower, double *upper)
{
    const struct encoding *e = s->enc;
    const double *theta = gp_model_theta(m), *centre = training_set_point(s, s->best);
    double sum = 0;
    for (size_t i = 0; i < e->n; i++)
        sum += e->params[i].real >= 0 ? theta[e->params[i].length] : 0;
    double mean = e->n_numeric ? sum / (double)e->n_numeric : 0;
    for (size_t i = 0; i < e->n; i++) {
        const struct encoded_param *p = &e->params[i];
        double side = p->real >= 0 ? t->length * exp(theta[p->length] - mean) : 2;
        lower[i] = fmax(0, centre[i] - side / 2);
        upper[i] = fmin(1, centre[i] + side / 2);
    }
}
