/* A suggestion in a part of the space: the part is a sweep of its own, whose trials are those that
 * lie in it. The fit of its model begins with that of the last part's. */
#include <stdio.h>
#include <string.h>

#include "search/gp/gp_priv.h"

#include "base/mem.h"

/* Results of the part, and one for every second number, before its model is used. */
#define MODEL_LEAST 3

static as_status create_set(const struct gp_ask *a, struct observation *trials,
                            struct training_set **ret, struct as_err *err)
{
    const struct training_set *s = a->set;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (part_holds(&a->part, training_set_point(s, i)))
            trials[n++] = s->trials[i];
    const struct encoding_learned learned = {NULL, 0, a->bends.bent, a->bends.n_bent};
    return training_set_create_with(s->spec, &(struct history){trials, n}, &learned,
                                    &a->cache->own_places, ret, err);
}

/* The acquisition's best point in the part, by a model of the part's trials. */
static as_status find_by_model(struct gp_ask *a, const struct training_set *s, struct as_err *err)
{
    size_t d = s->enc->n;
    AS_AUTO(as_freep) double *box = as_calloc(2 * d, sizeof *box);
    if (!box)
        return as_fail_nomem(err);
    for (size_t i = 0; i < d; i++) {
        box[i] = i == a->part.param ? a->part.lower : 0;
        box[d + i] = i == a->part.param ? a->part.upper : 1;
    }
    struct surrogate_spec spec = {a->row->target, 0, GP_MAX_ROWS, a->number};
    const json_t *state = json_object_get(json_object_get(a->state, "models"), GP_PART_MODEL);
    as_status st = surrogate_prepare(&a->cache->own, s, &spec, state, &a->models[0], err);
    if (st < 0)
        return st;
    a->n_models = 1;
    (void)snprintf(a->own_model, sizeof a->own_model, "%s", GP_PART_MODEL);
    a->acquisition = (struct acquisition){.kind = a->row->kind, .n_objectives = 1};
    a->acquisition.best = surrogate_forward(&a->models[0], s->costs[s->best]);
    struct gp_optimizer_problem p = {.set = s,
                                     .acquisition = &a->acquisition,
                                     .models = a->models,
                                     .region = {box, box + d, training_set_point(s, s->best), NULL},
                                     .number = a->number};
    return gp_optimize(&p, &a->cache->optimizer, a->point, &a->found, err);
}

as_status gp_part_suggest(struct gp_ask *a, struct as_err *err)
{
    AS_AUTO(as_freep) struct observation *trials = as_calloc(a->set->n, sizeof *trials);
    AS_AUTO(training_set_freep) struct training_set *s = NULL;
    if (!trials)
        return as_fail_nomem(err);
    as_status st = create_set(a, trials, &s, err);
    if (st < 0)
        return st;
    if (s->n_feasible >= MODEL_LEAST + s->enc->n_lengths / 2)
        return find_by_model(a, s, err);
    a->is_spread = a->found.is_found = part_spread(a->set, &a->part, a->number, a->point);
    return AS_OK;
}
