/* The fits of a model: when one is due, and how it is spread over suggestions. Whether a fit is due
 * depends only on the history and the stored state, never on the cache, so that every server takes
 * the same decision.
 *
 * A fit to few rows is cheap and is done at once. A fit to more would make one suggestion in twenty
 * wait ten times as long as the others. So it is done in slices: each suggestion computes a few
 * values of the posterior, and the state carries the point that was reached, its scale, and the
 * rows that the fit sees. The model keeps the hyperparameters and the base of the last
 * finished fit meanwhile. */
#include "search/gp/surrogate.h"

#include <math.h>
#include <string.h>

#include "base/blas.h"
#include "base/rng.h"
#include "search/gp/surrogate_priv.h"
#include "search/problem/random_stream.h"

#define ALWAYS_REFIT 200 /* up to this many rows every new row causes a fit */
#define GROWTH 1.05
#define SURPRISE 4.0    /* deviations */
#define RANDOM_START 50 /* up to this many rows a fit also starts at random */
#define COLD_START 100  /* and up to this many at the default, */
/* past this many rows, without or with categories, only every AFRESH_EVERY-th time */
#define AFRESH_ROWS 20
#define AFRESH_ROWS_CATEGORIES 50
#define AFRESH_EVERY 3
#define COLD_ROWS 128 /* a first fit to more rows than ALWAYS_REFIT begins with this many of them */
/* A fit to at least so many rows computes at most so many values from each start: the next new row
 * continues it. One in a hundred needs more. */
#define LIMITED_ROWS 50
#define LIMITED_EVALS 40
/* A slice: values of the posterior of at most so many rows in all, but not less than the least. Of
 * the cost of a suggestion without a fit, a slice is two to three times. */
#define SLICE_ROWS 2000
#define SLICE_LEAST 4
#define SLICES_EVALS 24  /* of all slices; then the fit counts as finished */
#define SLICE_F_TOL 5e-5 /* so does one whose step gains less than this share of the value */

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a fit");
}

static uint64_t best_number(const struct surrogate_task *t)
{
    return t->s->best == TRAINING_SET_NONE ? 0 : t->s->trials[t->s->best].number;
}

/* ---- when a fit is due ---- */

/* L^-1 (y - m): entry i is the number of deviations between value i and its prediction from the
 * rows before it. */
static as_status is_surprised(const struct surrogate_task *t, bool *ret, struct as_err *err)
{
    const struct gp_model *m = t->store->models[t->slot];
    size_t n = surrogate_n_valued(t), ld;
    const double *lower = gp_model_lower(m, &ld);
    AS_AUTO(as_freep) double *w = as_calloc(n, sizeof *w);
    if (!w)
        return out_of_memory(err);
    for (size_t i = 0; i < n; i++)
        w[i] = t->row_y[i] - gp_model_constant(m);
    blas_need()->dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, lower,
                       (int)ld, w, 1);
    *ret = false;
    for (size_t i = t->n_base; i < n; i++)
        *ret |= fabs(w[i]) > SURPRISE;
    return AS_OK;
}

/* The need for a fit, judged by the number of new rows before a model is built. Appending thousands
 * of rows to a factor one by one and then fitting again would take seconds. */
typedef enum fit_wish {
    FIT_NO,
    FIT_ASK_MODEL,
    FIT_SLICE, /* begin one, or continue */
    FIT_BASE,  /* begin one, and let the base be all rows now */
    FIT_NOW    /* at once */
} fit_wish;

static fit_wish fit_by_count(const struct surrogate_task *t)
{
    size_t n = t->n_done, n_fit = 0;
    for (size_t i = 0; i < n; i++)
        n_fit += t->fit.in_fit[i];
    size_t fresh = n - n_fit;
    if (fresh && n <= ALWAYS_REFIT)
        return FIT_NOW;
    if (fresh >= SURROGATE_NEW_ROWS)
        return FIT_BASE;
    if (t->next.is_set)
        return FIT_SLICE;
    if (!fresh)
        return FIT_NO;
    if ((double)n >= GROWTH * (double)n_fit)
        return FIT_SLICE;
    return fresh * 100 < n ? FIT_NO : FIT_ASK_MODEL;
}

static as_status fit_by_model(const struct surrogate_task *t, bool *ret, struct as_err *err)
{
    *ret =
        surrogate_is_objective(t->spec->target) && t->spec->k == 0 && best_number(t) != t->fit.best;
    return *ret ? AS_OK : is_surprised(t, ret, err);
}

/* ---- fitting ---- */

/* Does a fit to n rows also start away from its last optimum? A hash of the trial decides, so that
 * this also happens to models that are fitted only on every second or fourth trial. */
static bool looks_afresh(const struct surrogate_task *t, size_t n)
{
    return n <= (t->s->columns.n_cat ? AFRESH_ROWS_CATEGORIES : AFRESH_ROWS) ||
           rng_mix(t->s->spec->seed, t->spec->number) % AFRESH_EVERY == 0;
}

struct fit_limits {
    size_t max_evals; /* as in gp_fit_opts */
    double f_tol;
};

/* Fit to some places. From f->theta, if it is warm; sets f->theta and f->scale. */
static as_status fit_to(struct surrogate_task *t, struct surrogate_fit *f, const size_t *places,
                        size_t n, bool warm, const struct fit_limits *limits, bool *ret_converged,
                        struct as_err *err)
{
    AS_AUTO(surrogate_rows_done) struct surrogate_rows g = {0};
    struct gp_fit_result result;
    if (!t->store->fit && !(t->store->fit = gp_fit_work_create()))
        return out_of_memory(err);
    as_status st = surrogate_gather(t, places, n, &g, err);
    if (st < 0)
        return st;
    bool afresh = looks_afresh(t, n);
    struct gp_fit_opts opts = {.warm = warm ? f->theta : NULL,
                               .scale = warm ? f->scale : NULL,
                               .cold = n <= COLD_START && afresh,
                               .n_random = n <= RANDOM_START && afresh,
                               .key = rng_mix(t->s->spec->seed, t->slot),
                               .purpose = t->spec->number << 8 | SEARCH_DRAW_GP_FIT,
                               .max_evals = limits->max_evals,
                               .f_tol = limits->f_tol};
    st = gp_fit(&t->columns, &(struct gp_rows){n, g.x, g.z, g.steps}, g.y, &opts, t->store->fit,
                f->theta, &result, err);
    if (st < 0)
        return st;
    memcpy(f->scale, gp_fit_scale(t->store->fit), gp_n_theta(&t->columns) * sizeof *f->scale);
    f->evals += result.evals;
    t->evals += result.evals;
    *ret_converged = result.converged;
    return AS_OK;
}

/* The places that a fit sees: at most SURROGATE_FIT_ROWS of its trials. */
static as_status list_places(const struct surrogate_task *t, const struct surrogate_fit *f,
                             size_t *places, size_t *ret_n, struct as_err *err)
{
    *ret_n = 0;
    for (size_t i = 0; i < t->n_done; i++)
        if (f->in_fit[i])
            places[(*ret_n)++] = i;
    return surrogate_thin(t, places, ret_n, SURROGATE_FIT_ROWS, err);
}

static void mark_all(const struct surrogate_task *t, struct surrogate_fit *f)
{
    for (size_t i = 0; i < t->n_done; i++)
        f->in_fit[i] = true;
    f->best = best_number(t);
}

static void copy_point(const struct surrogate_task *t, const struct surrogate_fit *from,
                       struct surrogate_fit *to)
{
    size_t n = gp_n_theta(&t->columns);
    memcpy(to->theta, from->theta, n * sizeof *to->theta);
    memcpy(to->scale, from->scale, n * sizeof *to->scale);
}

/* Begin a fit to all trials from the last one. */
static void begin_next(struct surrogate_task *t)
{
    copy_point(t, &t->fit, &t->next);
    mark_all(t, &t->next);
    t->next.is_set = true;
    t->next.evals = 0;
}

/* The next slice of the fit that is under way, or the first one of a new fit. *ret_ended: it is
 * finished, and is t->fit now. */
static as_status fit_slice(struct surrogate_task *t, bool *ret_ended, struct as_err *err)
{
    struct surrogate_fit *f = &t->next;
    size_t n;
    AS_AUTO(as_freep) size_t *places = as_calloc(t->n_done, sizeof *places);
    if (!places)
        return out_of_memory(err);
    if (!f->is_set)
        begin_next(t);
    as_status st = list_places(t, f, places, &n, err);
    if (st < 0)
        return st;
    struct fit_limits slice = {SLICE_ROWS / n > SLICE_LEAST ? SLICE_ROWS / n : SLICE_LEAST,
                               SLICE_F_TOL};
    st = fit_to(t, f, places, n, true, &slice, ret_ended, err);
    *ret_ended |= st == AS_E_NUMERIC || f->evals >= SLICES_EVALS;
    if (st < 0 && st != AS_E_NUMERIC)
        return st;
    if (!*ret_ended)
        return AS_OK;
    copy_point(t, f, &t->fit);
    memcpy(t->fit.in_fit, f->in_fit, t->n_done * sizeof *f->in_fit);
    t->fit.best = f->best;
    f->is_set = false;
    return AS_OK;
}

/* The model of the stored fit, with at most one slice of the next one. AS_E_NUMERIC: it cannot be
 * built. */
static as_status build_with_stored(struct surrogate_task *t, fit_wish wish, struct surrogate *ret,
                                   struct as_err *err)
{
    as_status st = AS_OK;
    bool due = false;
    if (wish == FIT_BASE) {
        mark_all(t, &t->fit);
        begin_next(t);
    }
    if (wish == FIT_SLICE && (st = fit_slice(t, &ret->refitted, err)) < 0)
        return st;
    if ((st = surrogate_build(t, err)) < 0 || wish != FIT_ASK_MODEL)
        return st;
    if ((st = fit_by_model(t, &due, err)) < 0 || !due)
        return st;
    st = fit_slice(t, &ret->refitted, err);
    return st < 0 || !ret->refitted ? st : surrogate_build(t, err);
}

/* Fit to at most `max` trials at once, and build the model on all. */
static as_status fit_now(struct surrogate_task *t, size_t max, struct surrogate *ret,
                         struct as_err *err)
{
    size_t n;
    bool converged, warm = t->fit.is_set;
    AS_AUTO(as_freep) size_t *places = as_calloc(t->n_done, sizeof *places);
    if (!places)
        return out_of_memory(err);
    ret->refitted = true;
    t->next.is_set = false;
    mark_all(t, &t->fit);
    as_status st = list_places(t, &t->fit, places, &n, err);
    if (st < 0 || (st = surrogate_thin(t, places, &n, max, err)) < 0)
        return st;
    struct fit_limits limits = {.max_evals = n >= LIMITED_ROWS ? LIMITED_EVALS : 0};
    if ((st = fit_to(t, &t->fit, places, n, warm, &limits, &converged, err)) < 0)
        return st;
    t->fit.is_set = true;
    return surrogate_build(t, err);
}

/* The first model of many trials: fitted to few of them. The slices continue from there. */
static as_status fit_first(struct surrogate_task *t, struct surrogate *ret, struct as_err *err)
{
    as_status st = fit_now(t, COLD_ROWS, ret, err);
    if (st == AS_OK)
        begin_next(t);
    return st;
}

as_status surrogate_settle(struct surrogate_task *t, struct surrogate *ret, struct as_err *err)
{
    if (!t->fit.is_set && t->n_done > ALWAYS_REFIT)
        return fit_first(t, ret, err);
    fit_wish wish = t->fit.is_set ? fit_by_count(t) : FIT_NOW;
    as_status st = AS_E_NUMERIC;
    if (wish != FIT_NOW)
        st = build_with_stored(t, wish, ret, err);
    return st == AS_E_NUMERIC ? fit_now(t, SURROGATE_FIT_ROWS, ret, err) : st;
}
