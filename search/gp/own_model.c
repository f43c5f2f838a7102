/* A model of some trials alone, of a part of the space or of one value of a choice: these are a
 * sweep of their own. */
#include <stdio.h>

#include "search/gp/gp_priv.h"

as_status gp_own_set(const struct gp_ask *a, gp_own_fn *holds,
                     const struct encoding_learned *learned, struct observation *trials,
                     struct training_set **ret, struct as_err *err)
{
    const struct training_set *s = a->set;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (holds(a, training_set_point(s, i)))
            trials[n++] = s->trials[i];
    return training_set_create_with(s->spec, &(struct history){trials, n}, learned,
                                    &a->cache->own_places, ret, err);
}

as_status gp_own_optimize(struct gp_ask *a, const struct training_set *s, const char *name,
                          surrogate_target target, const struct acquisition *acquisition,
                          const struct gp_region *region, struct as_err *err)
{
    struct surrogate_spec spec = {target, 0, GP_MAX_ROWS, a->number};
    const json_t *state = json_object_get(json_object_get(a->state, "models"), name);
    as_status st = surrogate_prepare(&a->cache->own, s, &spec, state, &a->models[0], err);
    if (st < 0)
        return st;
    a->n_models = 1;
    (void)snprintf(a->own_model, sizeof a->own_model, "%s", name);
    a->acquisition = *acquisition;
    a->acquisition.best = surrogate_forward(&a->models[0], s->costs[s->best]);
    struct gp_optimizer_problem p = {.set = s,
                                     .acquisition = &a->acquisition,
                                     .models = a->models,
                                     .region = *region,
                                     .number = a->number};
    return gp_optimize(&p, &a->cache->optimizer, a->point, &a->found, err);
}
