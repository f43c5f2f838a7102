/* A suggestion under one value of the leading choice, by a model of this value's trials alone: it
 * learns which numbers have an effect here, whatever they do under other values. */
#include <stdio.h>

#include "search/gp/gp_priv.h"

#include "base/mem.h"

static as_status create_set(const struct gp_ask *a, struct observation *trials,
                            struct training_set **ret, struct as_err *err)
{
    const struct training_set *s = a->set;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (branch_holds(s->enc, &a->branch, training_set_point(s, i)))
            trials[n++] = s->trials[i];
    const struct encoding_learned learned = {a->relevance.dead, a->relevance.n_dead, a->bends.bent,
                                             a->bends.n_bent};
    return training_set_create_with(s->spec, &(struct history){trials, n}, &learned,
                                    &a->cache->own_places, ret, err);
}

bool gp_value_has_turn(const struct gp_ask *a)
{
    const struct branch *b = &a->branch;
    return a->row->point == POINT_BRANCH && b->is_own && !b->is_revisit &&
           (b->n_ended + b->n_pending) % 2 == 0;
}

as_status gp_value_suggest(struct gp_ask *a, struct as_err *err)
{
    const struct branch *b = &a->branch;
    AS_AUTO(as_freep) struct observation *trials = as_calloc(a->set->n, sizeof *trials);
    AS_AUTO(training_set_freep) struct training_set *s = NULL;
    if (!trials)
        return as_fail_nomem(err);
    as_status st = create_set(a, trials, &s, err);
    if (st < 0)
        return st;
    struct surrogate_spec spec = {SURROGATE_WARPED, 0, GP_MAX_ROWS, a->number};
    (void)snprintf(a->own_model, sizeof a->own_model, "v%zu-%zu", b->param, (size_t)b->level);
    const json_t *state = json_object_get(json_object_get(a->state, "models"), a->own_model);
    st = surrogate_prepare(&a->cache->own, s, &spec, state, &a->models[0], err);
    if (st < 0)
        return st;
    a->n_models = 1;
    a->acquisition =
        (struct acquisition){.kind = s->n % 4 == 2 ? ACQUISITION_UCB : ACQUISITION_LOGEI,
                             .n_objectives = 1,
                             .beta = gp_ucb_beta(a->set)};
    a->acquisition.best = surrogate_forward(&a->models[0], s->costs[s->best]);
    struct gp_optimizer_problem p = {.set = s,
                                     .acquisition = &a->acquisition,
                                     .models = a->models,
                                     .region = {NULL, NULL, NULL, b},
                                     .number = a->number};
    return gp_optimize(&p, &a->cache->optimizer, a->point, &a->found, err);
}
