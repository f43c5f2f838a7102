/* A suggestion under one value of the leading choice, by a model of this value's trials alone: it
 * learns which numbers have an effect here, whatever they do under other values. */
#include <stdio.h>

#include "search/gp/gp_priv.h"

#include "base/mem.h"

static bool has_value(const struct gp_ask *a, const double *point)
{
    return branch_holds(a->set->enc, &a->branch, point);
}

/* The few trials of a value say nothing alone of more numbers (decisions 4036, 4040). */
#define NUMBERS_MOST 20

bool gp_value_has_turn(const struct gp_ask *a)
{
    const struct branch *b = &a->branch;
    return a->set->enc->n_numeric <= NUMBERS_MOST && a->row->point == POINT_BRANCH && b->is_own &&
           !b->is_revisit && (b->n_ended + b->n_pending) % 2 == 0;
}

as_status gp_value_suggest(struct gp_ask *a, struct as_err *err)
{
    const struct branch *b = &a->branch;
    AS_AUTO(as_freep) struct observation *trials = as_calloc(a->set->n, sizeof *trials);
    AS_AUTO(training_set_freep) struct training_set *s = NULL;
    char name[sizeof a->own_model];
    if (!trials)
        return as_fail_nomem(err);
    const struct encoding_learned learned = {a->relevance.dead, a->relevance.n_dead, a->bends.bent,
                                             a->bends.n_bent};
    as_status st = gp_own_set(a, has_value, &learned, trials, &s, err);
    if (st < 0)
        return st;
    const struct acquisition q = {.kind = s->n % 4 == 2 ? ACQUISITION_UCB : ACQUISITION_LOGEI,
                                  .n_objectives = 1,
                                  .beta = gp_ucb_beta(a->set)};
    const struct gp_region region = {NULL, NULL, NULL, b};
    (void)snprintf(name, sizeof name, "v%zu-%zu", b->param, (size_t)b->level);
    return gp_own_optimize(a, s, name, SURROGATE_WARPED, &q, &region, err);
}
