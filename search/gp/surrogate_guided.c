/* A surrogate that earlier sweeps may guide. They predict values of the last step, so a model with
 * steps has no guides. Two models compete: without guides, as if there were
 * none, and with them. So an unrelated sweep changes nothing. The state is that of the first. */
#include <string.h>

#include "search/gp/surrogate_priv.h"
#include "search/problem/random_stream.h"

/* GUIDE_GAIN keeps guides out after an unrelated sweep (decision 4011): both the shift and the fit
 * must be more probable by e. */
#define GUIDED_FITS 2
#define GUIDE_GAIN 1.0 /* of the logarithm of the evidence, and of the fit, to use guides */

bool surrogate_is_guided(const struct surrogate_task *t)
{
    return t->s->spec->earlier && surrogate_is_objective(t->spec->target) && !t->columns.has_steps;
}

/* Fit to what the guides leave of the values y, from the defaults: the weights depend on the
 * hyperparameters, and these on what the guides leave. Sets t->y, theta, and *ret_nll of the
 * fit. */
static as_status fit_guided(struct surrogate_task *t, struct guides *guides,
                            const struct surrogate_rows *g, double *theta, double *ret_nll,
                            struct as_err *err)
{
    const struct gp_columns *c = &t->columns;
    struct gp_rows rows = {g->n, g->x, g->z};
    struct gp_fit_opts opts = {.cold = true, .purpose = SEARCH_DRAW_GP_FIT};
    struct gp_fit_result result = {0};
    gp_theta_default(c, theta);
    for (int round = 0; round < GUIDED_FITS; round++) {
        memcpy(t->y, g->y, g->n * sizeof *t->y);
        as_status st = guides_explain(guides, c, theta, &rows, t->y, err);
        if (st < 0 || (st = gp_fit(c, &rows, t->y, &opts, t->store->fit, theta, &result, err)) < 0)
            return st;
    }
    *ret_nll = result.nll;
    return AS_OK;
}

/* Build the model with other hyperparameters than those of the state. */
static as_status build_with(struct surrogate_task *t, double *theta, struct as_err *err)
{
    double *own = t->fit.theta;
    t->fit.theta = theta;
    as_status st = surrogate_build(t, err);
    t->fit.theta = own;
    return st;
}

/* Are guides better than none by the evidence of their shifts and by the fit? If so, sets t->y and
 * theta as fit_guided(). AS_E_NOMEM; AS_E_NUMERIC: a fit failed. */
static as_status try_guides(struct surrogate_task *t, struct guides *guides,
                            const struct surrogate_rows *g, double *theta, bool *ret,
                            struct as_err *err)
{
    const struct gp_columns *c = &t->columns;
    struct gp_rows rows = {g->n, g->x, g->z};
    double gain = 0, nll = 0, guided = 0;
    if (!t->store->fit && !(t->store->fit = gp_fit_work_create()))
        return as_fail_nomem(err);
    as_status st = gp_fit_value(c, &rows, g->y, t->fit.theta, t->store->fit, &nll, NULL, err);
    if (st < 0 || (st = guides_find_shifts(guides, c, &rows, g->cost, &gain, err)) < 0)
        return st;
    *ret = false;
    if (!(gain > GUIDE_GAIN)) /* most of the time, after an unrelated sweep */
        return AS_OK;
    st = fit_guided(t, guides, g, theta, &guided, err);
    if (st == AS_OK)
        *ret = nll - guided > GUIDE_GAIN;
    return st;
}

as_status surrogate_settle_guided(struct surrogate_task *t, struct surrogate *ret,
                                  struct as_err *err)
{
    const struct gp_columns *c = &t->columns;
    AS_AUTO(as_freep) size_t *places = as_calloc(t->n_done, sizeof *places);
    AS_AUTO(as_freep) double *theta = as_calloc(gp_n_theta(c), sizeof *theta);
    AS_AUTO(surrogate_rows_done) struct surrogate_rows g = {0};
    bool is_better = false;
    if (!places || !theta)
        return as_fail_nomem(err);
    as_status st = surrogate_settle(t, ret, err);
    for (size_t i = 0; i < t->n_done; i++)
        places[i] = i;
    if (st < 0 || (st = surrogate_gather(t, places, t->n_done, &g, err)) < 0)
        return st;
    struct gp_rows rows = {g.n, g.x, g.z};
    st = guides_create(&t->store->guides, t->s, surrogate_warp_kind(t), &rows, &ret->guides, err);
    if (st < 0 || !ret->guides.n)
        return st;
    st = try_guides(t, &ret->guides, &g, theta, &is_better, err);
    if (st < 0 && st != AS_E_NUMERIC)
        return st;
    if (is_better)
        return build_with(t, theta, err);
    guides_drop(&ret->guides, c);
    memcpy(t->y, g.y, g.n * sizeof *t->y);
    return AS_OK;
}
