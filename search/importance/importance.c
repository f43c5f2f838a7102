/* Trials -> a model -> functions drawn from it -> indices of each function -> means and quantiles.
 *
 * The functions are functions of the unit cube: one uniform number for each parameter, active or
 * not, as the samplers draw them. So they are defined everywhere, an inactive parameter has no
 * effect, and the inputs are independent (also within a region: region.h). */
#include "search/importance/importance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#include "search/space/encoding.h"
#include "search/importance/objective_model.h"
#include "search/importance/ped_anova.h"
#include "search/importance/region.h"
#include "search/problem/random_stream.h"
#include "search/importance/sensitivity.h"
#include "search/regression/paths.h"

#define DRAWS 48              /* functions */
#define FUNCTIONS (DRAWS + 1) /* and the posterior mean, first */
#define FEATURES 512          /* of their priors */
#define MAX_SAMPLES 1024
#define MIN_SAMPLES 128
#define BUDGET 1.5e7 /* covariances and features over all points: limits the number of samples */

/* Streams of SEARCH_DRAW_IMPORTANCE: the counter's high word is `stream << 8 | purpose`. The fit of
 * objective_model.c has stream 0. */
enum stream { STREAM_PATHS = 1, STREAM_DESIGN };

static uint64_t purpose_of(uint64_t stream)
{
    return stream << 8 | SEARCH_DRAW_IMPORTANCE;
}

void importance_free(struct importance *i)
{
    if (!i)
        return;
    free(i->parameters);
    free(i);
}

/* ---- the indices ---- */

/* Functions of the unit cube: a point is mapped into a region, then to a configuration's
 * features. */
struct cube {
    const struct training_set *s;
    struct gp_paths *paths;      /* owned */
    const struct region *region; /* of the parameters that are measured now */
    double *u;                   /* owned: one point */
    double *x;                   /* owned: GP_PATHS_BATCH x n_real */
    int32_t *z;                  /* owned: GP_PATHS_BATCH x n_category */
};

static void cube_done(struct cube *c)
{
    gp_paths_free(c->paths);
    free(c->u);
    free(c->x);
    free(c->z);
}

static void cube_point(struct cube *c, const double *u)
{
    memcpy(c->u, u, c->s->enc->n * sizeof *c->u);
    region_map(c->region, c->u);
    encoding_from_unit(c->s->enc, c->u, c->u);
}

static as_status cube_evaluate(void *ctx, const double *u, size_t n, double *ret,
                               struct as_err *err)
{
    (void)err;
    struct cube *c = ctx;
    const struct encoding *e = c->s->enc;
    for (size_t at = 0, now; at < n; at += now) {
        now = n - at < GP_PATHS_BATCH ? n - at : GP_PATHS_BATCH;
        for (size_t i = 0; i < now; i++) {
            cube_point(c, u + (at + i) * e->n);
            encoding_features(e, c->u, c->x + i * e->n_real, c->z + i * e->n_category);
        }
        struct gp_rows rows = {now, c->x, c->z};
        gp_paths_evaluate(c->paths, &rows, ret + at * FUNCTIONS);
    }
    return AS_OK;
}

static bool cube_allowed(void *ctx, const double *u)
{
    struct cube *c = ctx;
    cube_point(c, u);
    return encoding_allows(c->s->enc, c->u, c->s->scratch);
}

static as_status cube_create(const struct training_set *s, const struct gp_model *m,
                             const double *y, struct cube *ret, struct as_err *err)
{
    const struct encoding *e = s->enc;
    AS_AUTO(as_freep) uint32_t *n_values = as_calloc(e->n_category, sizeof *n_values);
    ret->s = s;
    ret->u = as_calloc(e->n, sizeof *ret->u);
    ret->x = as_calloc(GP_PATHS_BATCH, e->n_real * sizeof *ret->x);
    ret->z = as_calloc(GP_PATHS_BATCH, e->n_category * sizeof *ret->z);
    if (!n_values || !ret->u || !ret->x || !ret->z)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    for (size_t i = 0; i < e->n; i++)
        if (e->params[i].category >= 0)
            n_values[e->params[i].category] = (uint32_t)e->params[i].levels;
    return gp_paths_create(m, y, FUNCTIONS, FEATURES, n_values, s->spec->seed,
                           purpose_of(STREAM_PATHS), &ret->paths, err);
}

static double clip_index(double v)
{
    return fmin(fmax(v, 0), 1);
}

/* values[0] belongs to the mean function; the draws follow and are sorted. The interval is
 * stretched to hold the estimate: draws are rougher than the mean, so a parameter without effect on
 * the mean has a small effect on each draw. */
static void summarise_draws(double *values, double *ret, double *ret_low, double *ret_high)
{
    double *draws = values + 1;
    qsort(draws, DRAWS, sizeof *draws, as_order_f64);
    *ret = clip_index(values[0]);
    *ret_low = fmin(*ret, clip_index(draws[(size_t)(0.05 * (DRAWS - 1))]));
    *ret_high = fmax(*ret, clip_index(draws[(size_t)ceil(0.95 * (DRAWS - 1))]));
}

/* Points for each set: a power of two, within the budget. */
static size_t choose_samples(const struct training_set *s, size_t n_rows)
{
    size_t samples = MAX_SAMPLES;
    double each = (double)(s->enc->n_lengths + 2) * (double)(n_rows + FEATURES);
    while (samples > MIN_SAMPLES && (double)samples * each > BUDGET)
        samples /= 2;
    return samples;
}

/* The parameters of one region: inputs[0..n) are their numbers, places[0..n) their entries. */
static as_status measure_region(struct cube *c, const struct region *region, size_t samples,
                                const size_t *inputs, const size_t *places, size_t n,
                                struct importance *imp, struct as_err *err)
{
    AS_AUTO(as_freep) double *first = as_calloc(n, FUNCTIONS * sizeof *first);
    AS_AUTO(as_freep) double *total = as_calloc(n, FUNCTIONS * sizeof *total);
    if (!first || !total)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    c->region = region;
    struct sensitivity_problem p = {.d = c->s->enc->n,
                                    .n_functions = FUNCTIONS,
                                    .rows = samples,
                                    .key = c->s->spec->seed,
                                    .hi = purpose_of(STREAM_DESIGN),
                                    .evaluate = cube_evaluate,
                                    .allowed = space_is_constrained(c->s->enc->space) ? cube_allowed
                                                                                      : NULL,
                                    .ctx = c,
                                    .resample = true};
    as_status st = sensitivity_estimate(&p, inputs, n, first, total, err);
    if (st < 0)
        return st;
    for (size_t k = 0; k < n; k++) {
        struct importance_parameter *q = &imp->parameters[places[k]];
        summarise_draws(first + k * FUNCTIONS, &q->first, &q->first_low, &q->first_high);
        summarise_draws(total + k * FUNCTIONS, &q->total, &q->total_low, &q->total_high);
    }
    return AS_OK;
}

/* Entries are in the space's order; `numbers` says which parameter each is. Those of one region are
 * measured together. */
static as_status measure_all(struct cube *c, size_t samples, const size_t *numbers,
                             struct importance *imp, struct as_err *err)
{
    const struct space *space = c->s->enc->space;
    AS_AUTO(as_freep) bool *is_done = as_calloc(imp->n, sizeof *is_done);
    AS_AUTO(as_freep) size_t *inputs = as_calloc(imp->n, sizeof *inputs);
    AS_AUTO(as_freep) size_t *places = as_calloc(imp->n, sizeof *places);
    if (!is_done || !inputs || !places)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    for (size_t k = 0; k < imp->n; k++) {
        if (is_done[k])
            continue;
        AS_AUTO(region_freep) struct region *region = NULL;
        as_status st = region_create(space, numbers[k], &region, err);
        if (st < 0)
            return st;
        size_t n = 0;
        for (size_t l = k; l < imp->n; l++) {
            AS_AUTO(region_freep) struct region *other = NULL;
            if (is_done[l])
                continue;
            st = region_create(space, numbers[l], &other, err);
            if (st < 0)
                return st;
            if (!region_equal(region, other))
                continue;
            is_done[l] = true;
            inputs[n] = numbers[l];
            places[n++] = l;
        }
        st = measure_region(c, region, samples, inputs, places, n, imp, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* ---- all of it ---- */

/* An entry for each parameter that can vary; ret_numbers[k] is entry k's parameter. */
static as_status add_parameters(const struct objective_model *m, size_t *ret_numbers,
                                struct importance *imp, struct as_err *err)
{
    const struct encoding *e = m->s->enc;
    AS_AUTO(as_freep) double *top = as_calloc(e->n, sizeof *top);
    imp->parameters = as_calloc(e->n, sizeof *imp->parameters);
    if (!top || !imp->parameters)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    as_status st = ped_anova(e, m->all_points, m->all_costs, m->n_all, top, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < e->n; i++) {
        if (e->params[i].kind == ENCODED_CONSTANT)
            continue;
        ret_numbers[imp->n] = i;
        imp->parameters[imp->n++] =
            (struct importance_parameter){.name = e->space->params[i].name,
                                          .is_conditional = e->params[i].is_conditional,
                                          .top = top[i]};
    }
    return AS_OK;
}

static as_status explore_model(const struct objective_model *m, struct importance *imp,
                               struct as_err *err)
{
    const struct training_set *s = m->s;
    AS_AUTO(cube_done) struct cube cube = {0};
    AS_AUTO(as_freep) size_t *numbers = as_calloc(s->enc->n, sizeof *numbers);
    if (!numbers)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    if (m->r2 < IMPORTANCE_MIN_R2) {
        snprintf(imp->reason, sizeof imp->reason,
                 "the model explains too little of the values: R2 is %.2f, it takes %g", m->r2,
                 IMPORTANCE_MIN_R2);
        return AS_OK;
    }
    as_status st = cube_create(s, m->model, m->y, &cube, err);
    if (st == AS_OK)
        st = add_parameters(m, numbers, imp, err);
    if (st < 0)
        return st;
    st = measure_all(&cube, choose_samples(s, m->n), numbers, imp, err);
    if (st == AS_E_EXHAUSTED) {
        imp->n = 0;
        snprintf(imp->reason, sizeof imp->reason,
                 "the constraints allow too small a part of the space");
        return AS_OK;
    }
    return st;
}

as_status importance_compute(const struct search_spec *spec, const struct history *history,
                             size_t objective, struct importance **ret, struct as_err *err)
{
    AS_AUTO(importance_freep) struct importance *imp = as_calloc(1, sizeof *imp);
    AS_AUTO(objective_model_freep) struct objective_model *m = NULL;
    if (!imp)
        return as_fail(err, AS_E_NOMEM, "out of memory for importance");
    as_status st = objective_model_create(spec, history, objective, &m, err);
    if (st < 0)
        return st;
    *imp = (struct importance){.method = "gp-sobol", .trials = m->n_all, .r2 = m->r2};
    snprintf(imp->reason, sizeof imp->reason, "%s", m->reason);
    if (m->model && (st = explore_model(m, imp, err)) < 0)
        return st;
    *ret = as_steal(imp);
    return AS_OK;
}
