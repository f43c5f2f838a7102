/* The way from trials to a suggestion is that of all methods that propose points (population.h).
 * The forest is grown and searched once for a suggestion, at the first proposal; what follows where
 * that found nothing new is drawn anywhere. */
#include "search/forest/forest_method.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/forest/forest_search.h"
#include "search/population/population.h"
#include "search/prior/trust.h"
#include "search/problem/explain.h"

/* One suggestion. */
struct forest_ask {
    bool is_searched;
};

static as_status forest_begin(const struct population *p, void **ret_self, struct as_err *err)
{
    (void)p;
    *ret_self = as_calloc(1, sizeof(struct forest_ask));
    return *ret_self ? AS_OK : as_fail_nomem(err);
}

/* Is the metric itself what is minimised, and not the order of the trials? */
static bool follows_metric(const struct training_set *s)
{
    return s->spec->n_objectives == 1 && !s->spec->n_outcomes && !s->n_partial;
}

/* Small is good. ret: [set->n], zeroed. */
static void set_costs(const struct population *p, double *ret)
{
    const struct training_set *s = p->set;
    for (size_t i = 0; i < p->n; i++) {
        size_t row = p->order[i];
        if (s->state[row] == OBSERVED_FAILED)
            ret[row] = INFINITY;
        else
            ret[row] = follows_metric(s) ? s->costs[row] : (double)i;
    }
}

static int describe(const struct training_set *s, const struct forest_found *found,
                    const struct prior_weights *priors, json_t *reason)
{
    double mean = s->spec->maximize[0] ? -found->mean : found->mean;
    json_t *predicted = follows_metric(s)
                            ? json_pack("{s:o, s:o}", "mean", json_number_new(mean), "deviation",
                                        json_number_new(found->deviation))
                            : NULL;
    return json_object_update_new(
        reason,
        json_pack("{s:o, s:o*, s:o*}", "value", json_number_new(found->value), "predicted",
                  predicted, "prior", priors->params > 0 ? json_number_new(priors->params) : NULL));
}

static as_status forest_propose(void *self, const struct population *p, struct rng *r,
                                double *ret_point, json_t *reason, struct as_err *err)
{
    struct forest_ask *ask = self;
    const struct training_set *s = p->set;
    struct forest_found found = {0};
    if (!ask->is_searched) {
        struct prior_weights priors = trust_weights(s);
        memset(priors.earlier, 0, sizeof priors.earlier); /* they are points of the design alone */
        AS_AUTO(as_freep) double *costs = as_calloc(s->n, sizeof *costs);
        ask->is_searched = true;
        if (!costs)
            return as_fail_nomem(err);
        set_costs(p, costs);
        as_status st = forest_search(s, costs, &priors, r, ret_point, &found, err);
        if (st < 0)
            return st;
        if (found.is_found)
            return describe(s, &found, &priors, reason) < 0 ? as_fail_nomem(err) : AS_OK;
    }
    for (size_t j = 0; j < s->enc->n; j++) /* nothing new near the good trials: anything new */
        ret_point[j] = rng_uniform(r);
    encoding_from_unit(s->enc, ret_point, ret_point);
    return AS_OK;
}

static void forest_explain(const json_t *reason, struct str *b)
{
    const json_t *predicted = json_object_get(reason, "predicted");
    double deviation;
    str_puts(b, "where a forest of trees expects the most improvement");
    explain_number(json_object_get(predicted, "mean"), ": predicted ", b);
    if (json_number_get(json_object_get(predicted, "deviation"), &deviation))
        str_printf(b, " ± %.2g", deviation);
    explain_prior(reason, b);
}

static const struct population_method forest = {.purpose = SEARCH_DRAW_FOREST,
                                                .begin = forest_begin,
                                                .propose = forest_propose,
                                                .end = free,
                                                .explain = forest_explain};

const struct search_method search_forest = POPULATION_METHOD("forest", forest);
