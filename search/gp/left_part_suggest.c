/* A suggestion in a part of the space: the part is a sweep of its own, whose trials are those that
 * lie in it. The fit of its model begins with that of the last part's. */
#include "search/gp/gp_priv.h"

#include "base/mem.h"

/* Results of the part, and one for every second number, before its model is used. */
#define MODEL_LEAST 3

static bool is_in_part(const struct gp_ask *a, const double *point)
{
    return part_holds(&a->part, point);
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
    const struct acquisition q = {.kind = a->row->kind, .n_objectives = 1};
    const struct gp_region region = {box, box + d, training_set_point(s, s->best), NULL};
    return gp_own_optimize(a, s, GP_PART_MODEL, a->row->target, &q, &region, err);
}

as_status gp_part_suggest(struct gp_ask *a, struct as_err *err)
{
    AS_AUTO(as_freep) struct observation *trials = as_calloc(a->set->n, sizeof *trials);
    AS_AUTO(training_set_freep) struct training_set *s = NULL;
    if (!trials)
        return as_fail_nomem(err);
    const struct encoding_learned learned = {NULL, 0, a->bends.bent, a->bends.n_bent};
    as_status st = gp_own_set(a, is_in_part, &learned, trials, &s, err);
    if (st < 0)
        return st;
    if (s->n_feasible >= MODEL_LEAST + s->enc->n_varied / 2)
        return find_by_model(a, s, err);
    a->is_spread = a->found.is_found = part_spread(a->set, &a->part, a->number, a->point);
    return AS_OK;
}
