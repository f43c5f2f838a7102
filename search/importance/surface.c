/* A point moves through the grid, from the base's place: its features are what the model compares,
 * so conditions and choices need no case of their own. Cells are predicted in batches, because the
 * deviation costs one triangular solve for all points of a batch. */
#include "search/importance/surface.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 128 /* cells that are predicted together */

static void axis_done(struct surface_axis *a)
{
    free(a->places);
    json_decref(a->values);
}

void surface_free(struct surface *s)
{
    if (!s)
        return;
    axis_done(&s->x);
    axis_done(&s->y);
    config_free(s->base);
    free(s->mean);
    free(s->deviation);
    free(s);
}

/* ---- axes ---- */

bool surface_has_axis(const struct objective_model *m, size_t i)
{
    return m->s->enc->params[i].kind != ENCODED_CONSTANT;
}

size_t surface_axis_length(const struct objective_model *m, size_t i, size_t n)
{
    const struct encoded_param *p = &m->s->enc->params[i];
    if (p->kind == ENCODED_CHOICE || (p->kind == ENCODED_LEVELS && p->levels < n))
        return (size_t)p->levels;
    return p->kind == ENCODED_CONSTANT ? 1 : n;
}

/* The k-th of n values. Some neighbours on a log scale may be the same level. */
static double axis_place(const struct encoding *e, size_t i, size_t k, size_t n)
{
    const struct encoded_param *p = &e->params[i];
    double share = (double)k / (double)(n - 1);
    if (p->kind == ENCODED_CONTINUOUS)
        return share;
    if (n == p->levels)
        return encoding_place(e, i, k);
    return encoding_place(e, i, encoding_level(e, i, share));
}

static json_t *axis_value(const struct encoding *e, size_t i, double place)
{
    const struct space_param *p = &e->space->params[i];
    union param_value v = e->params[i].kind == ENCODED_CONTINUOUS
                              ? (union param_value){.real = param_spread(p, place)}
                              : param_level(p, encoding_level(e, i, place));
    return param_value_to_json(p, v);
}

static as_status axis_init(const struct objective_model *m, size_t i, size_t n,
                           struct surface_axis *ret, struct as_err *err)
{
    const struct encoding *e = m->s->enc;
    size_t length = i == SURFACE_NONE ? 1 : surface_axis_length(m, i, n);
    ret->param = i;
    ret->places = as_calloc(length, sizeof *ret->places);
    ret->values = json_array();
    if (!ret->places || !ret->values)
        return as_fail_nomem(err);
    for (size_t k = 0; k < length; k++) {
        double place = i == SURFACE_NONE ? 0 : axis_place(e, i, k, length);
        if (k > 0 && place == ret->places[ret->n - 1])
            continue;
        ret->places[ret->n++] = place;
        if (i != SURFACE_NONE && json_array_append_new(ret->values, axis_value(e, i, place)) < 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
}

/* ---- cells ---- */

/* A point that moves through the grid, and what is computed about some cells together. */
struct cursor {
    const struct objective_model *m;
    struct gp_work *work; /* owned, as all below */
    double *point;
    bool *active;
    double *x; /* BATCH x n_real */
    int32_t *z;
    double mean[BATCH], var[BATCH];
    size_t cells[BATCH], n; /* cells that wait for a prediction */
};

static void cursor_done(struct cursor *c)
{
    gp_work_free(c->work);
    free(c->point);
    free(c->active);
    free(c->x);
    free(c->z);
}

static as_status cursor_init(struct cursor *c, const struct objective_model *m, struct as_err *err)
{
    const struct encoding *e = m->s->enc;
    c->m = m;
    c->work = gp_work_create();
    c->point = as_calloc(e->n, sizeof *c->point);
    c->active = as_calloc(e->n, sizeof *c->active);
    c->x = as_calloc(BATCH, e->n_real * sizeof *c->x);
    c->z = as_calloc(BATCH, e->n_category * sizeof *c->z);
    if (!c->work || !c->point || !c->active || !c->x || !c->z)
        return as_fail_nomem(err);
    return gp_work_reserve(c->work, m->model, BATCH, err);
}

static void predict_cells(struct cursor *c, struct surface *s)
{
    const struct objective_model *m = c->m;
    const struct gp_rows rows = {c->n, c->x, c->z};
    double sign = m->s->spec->maximize[m->objective] ? -1 : 1;
    if (c->n == 0)
        return;
    gp_predict(m->model, c->work, &rows, c->mean, c->var);
    for (size_t i = 0; i < c->n; i++) {
        s->mean[c->cells[i]] = sign * m->unit * (m->mean + m->span * c->mean[i]);
        s->deviation[c->cells[i]] = m->unit * m->span * sqrt(c->var[i]);
    }
    c->n = 0;
}

static bool is_active(const struct cursor *c, const struct surface_axis *a)
{
    return a->param == SURFACE_NONE || c->active[a->param];
}

static void add_cell(struct cursor *c, struct surface *s, size_t cell)
{
    const struct encoding *e = c->m->s->enc;
    s->mean[cell] = s->deviation[cell] = NAN;
    encoding_active(e, c->point, c->active);
    if (!is_active(c, &s->x) || !is_active(c, &s->y) ||
        !encoding_allows(e, c->point, c->m->s->scratch))
        return;
    encoding_features(e, c->point, c->x + c->n * e->n_real, c->z + c->n * e->n_category);
    c->cells[c->n++] = cell;
    if (c->n == BATCH)
        predict_cells(c, s);
}

static as_status fill_cells(const struct objective_model *m, const double *base, struct surface *s,
                            struct as_err *err)
{
    AS_AUTO(cursor_done) struct cursor c = {0};
    s->mean = as_calloc(s->x.n * s->y.n, sizeof *s->mean);
    s->deviation = as_calloc(s->x.n * s->y.n, sizeof *s->deviation);
    as_status st = s->mean && s->deviation ? cursor_init(&c, m, err) : as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    memcpy(c.point, base, m->s->enc->n * sizeof *base);
    for (size_t cell = 0; cell < s->x.n * s->y.n; cell++) {
        c.point[s->x.param] = s->x.places[cell % s->x.n];
        if (s->y.param != SURFACE_NONE)
            c.point[s->y.param] = s->y.places[cell / s->x.n];
        add_cell(&c, s, cell);
    }
    predict_cells(&c, s);
    return AS_OK;
}

/* ---- the base ---- */

static bool has_axes(const struct config *c, const struct surface *s)
{
    return c->entries[s->x.param].active &&
           (s->y.param == SURFACE_NONE || c->entries[s->y.param].active);
}

/* The best trial with both parameters, a feasible one if there is one; TRAINING_SET_NONE. */
static size_t find_base(const struct objective_model *m, const struct surface *s)
{
    const struct training_set *t = m->s;
    size_t best = TRAINING_SET_NONE;
    double best_cost = INFINITY;
    for (size_t i = 0; i < t->n; i++) {
        double cost = t->costs[i * t->spec->n_objectives + m->objective];
        if (!isfinite(cost) || !has_axes(t->trials[i].config, s))
            continue;
        bool is_first = best == TRAINING_SET_NONE;
        bool is_better = is_first || t->feasible[i] > t->feasible[best] ||
                         (t->feasible[i] == t->feasible[best] && cost < best_cost);
        if (is_better) {
            best = i;
            best_cost = cost;
        }
    }
    return best;
}

static as_status check_axes(const struct objective_model *m, size_t x, size_t y, size_t n,
                            struct as_err *err)
{
    size_t axes[] = {x, y};
    size_t cells = 1;
    if (x == y)
        return as_fail(err, AS_E_INVAL, "x and y are the same parameter");
    for (size_t k = 0; k < 2; k++) {
        if (axes[k] == SURFACE_NONE)
            continue;
        if (!surface_has_axis(m, axes[k]))
            return as_fail(err, AS_E_INVAL, "parameter '%.63s' has one value only",
                           m->s->enc->space->params[axes[k]].name);
        cells *= surface_axis_length(m, axes[k], n);
    }
    if (cells > SURFACE_MAX_CELLS)
        return as_fail(err, AS_E_INVAL,
                       "x and y have %zu combinations of values, expected at most %d", cells,
                       SURFACE_MAX_CELLS);
    return AS_OK;
}

as_status surface_compute(const struct objective_model *m, size_t x, size_t y, size_t n,
                          struct surface **ret, struct as_err *err)
{
    AS_AUTO(surface_freep) struct surface *s = as_calloc(1, sizeof *s);
    as_status st = s ? check_axes(m, x, y, n, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = axis_init(m, x, n, &s->x, err);
    if (st == AS_OK)
        st = axis_init(m, y, n, &s->y, err);
    if (st != AS_OK)
        return st;
    size_t base = find_base(m, s);
    if (base == TRAINING_SET_NONE) {
        snprintf(s->reason, sizeof s->reason, "no trial with a value has %s",
                 y == SURFACE_NONE ? "this parameter" : "both parameters");
        *ret = as_steal(s);
        return AS_OK;
    }
    s->base = config_copy(m->s->trials[base].config);
    s->base_number = m->s->trials[base].number;
    st = s->base ? fill_cells(m, training_set_point(m->s, base), s, err) : as_fail_nomem(err);
    if (st == AS_OK)
        *ret = as_steal(s);
    return st;
}
