/* From a training set to a conditioned model: rows, values, factor. The order of the rows is fixed:
 * the base of the last fit, then later results, then pending trials. So the factor of the base
 * stays valid while trials come and go, and only new rows are appended. */
#include "search/gp/surrogate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "search/regression/subset.h"
#include "search/gp/surrogate_priv.h"

#define UNIT_PARAMETERS 11

static void fit_done(struct surrogate_fit *f)
{
    free(f->theta);
    free(f->scale);
    free(f->in_fit);
}

static void task_done(struct surrogate_task *t)
{
    free(t->done);
    free(t->rung);
    free(t->y);
    free(t->cost);
    free(t->order);
    free(t->row_y);
    free(t->x);
    free(t->z);
    free(t->steps);
    fit_done(&t->fit);
    fit_done(&t->next);
}

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a model of the trials");
}

void surrogate_store_done(struct surrogate_store *s)
{
    for (size_t i = 0; i < SURROGATE_SLOTS; i++) {
        gp_model_free(s->models[i]);
        free(s->subset[i].chosen);
    }
    gp_fit_work_free(s->fit);
    guide_store_done(&s->guides);
    *s = (struct surrogate_store){0};
}

size_t surrogate_store_bytes(const struct surrogate_store *s)
{
    size_t bytes =
        sizeof *s + (s->fit ? gp_fit_work_bytes(s->fit) : 0) + guide_store_bytes(&s->guides);
    for (size_t i = 0; i < SURROGATE_SLOTS; i++) {
        bytes += s->models[i] ? gp_model_bytes(s->models[i]) : 0;
        bytes += s->subset[i].n_chosen * sizeof(size_t);
    }
    return bytes;
}

void surrogate_done(struct surrogate *s)
{
    gp_warp_free(s->warp);
    guides_done(&s->guides);
    json_decref(s->state);
    free(s->trials);
    *s = (struct surrogate){0};
}

void surrogate_name(const struct surrogate_spec *spec, char ret[16])
{
    static const char letters[] = "wpscf";
    snprintf(ret, 16, "%c%u", letters[spec->target], (unsigned)spec->k);
}

static size_t slot_of(const struct surrogate_spec *spec)
{
    switch (spec->target) {
    case SURROGATE_WARPED:
        return spec->k;
    case SURROGATE_PLAIN:
        return SEARCH_MAX_OBJECTIVES + spec->k;
    case SURROGATE_SMOOTH:
        return 2 * SEARCH_MAX_OBJECTIVES + spec->k;
    case SURROGATE_OUTCOME:
        return 3 * SEARCH_MAX_OBJECTIVES + spec->k;
    case SURROGATE_FAILURE:
        break;
    }
    return SURROGATE_SLOTS - 1;
}

/* ---- values ---- */

static double raw_value(const struct surrogate_task *t, size_t i)
{
    const struct training_set *s = t->s;
    switch (t->spec->target) {
    case SURROGATE_WARPED:
    case SURROGATE_PLAIN:
    case SURROGATE_SMOOTH:
        return s->costs[i * s->spec->n_objectives + t->spec->k];
    case SURROGATE_OUTCOME:
        return s->trials[i].outcomes[t->spec->k];
    case SURROGATE_FAILURE:
        break;
    }
    return s->state[i] == OBSERVED_FAILED;
}

static bool has_value(const struct surrogate_task *t, size_t i)
{
    observation_state state = t->s->state[i];
    return state == OBSERVED_COMPLETED ||
           (t->s->avoided[i] && t->spec->target == SURROGATE_FAILURE);
}

static void add_value(struct surrogate_task *t, size_t trial, const struct training_rung *rung)
{
    size_t at = t->n_done++;
    double first = rung ? rung->costs[0] : t->s->costs[trial * t->s->spec->n_objectives];
    t->done[at] = trial;
    t->rung[at] = rung;
    t->y[at] = rung ? rung->costs[t->spec->k] : raw_value(t, trial);
    t->cost[at] = isnan(first) ? INFINITY : first;
}

static as_status collect_values(struct surrogate_task *t, struct as_err *err)
{
    const struct training_set *s = t->s;
    size_t n = s->n + (t->columns.has_steps ? s->rung_from[s->n] : 0);
    t->done = as_calloc(n, sizeof *t->done);
    t->rung = as_calloc(n, sizeof *t->rung);
    t->y = as_calloc(n, sizeof *t->y);
    t->cost = as_calloc(n, sizeof *t->cost);
    if (!t->done || !t->rung || !t->y || !t->cost)
        return out_of_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        for (size_t r = 0; t->columns.has_steps && s->rung_from[i] + r < s->rung_from[i + 1]; r++)
            add_value(t, i, &s->rungs[s->rung_from[i] + r]);
        if (has_value(t, i))
            add_value(t, i, NULL);
    }
    return AS_OK;
}

static void standardise_failures(struct surrogate_task *t, struct surrogate *ret)
{
    double sum = 0, square = 0;
    for (size_t i = 0; i < t->n_done; i++)
        sum += t->y[i];
    double mean = t->n_done ? sum / (double)t->n_done : 0;
    for (size_t i = 0; i < t->n_done; i++)
        square += (t->y[i] - mean) * (t->y[i] - mean);
    double sd = t->n_done ? sqrt(square / (double)t->n_done) : 0;
    ret->mean = mean;
    ret->deviation = sd > 0 ? sd : 1;
    for (size_t i = 0; i < t->n_done; i++)
        t->y[i] = (t->y[i] - mean) / ret->deviation;
}

gp_warp_kind surrogate_warp_kind(const struct surrogate_task *t)
{
    if (t->spec->target == SURROGATE_WARPED)
        return WARP_HALF_RANK;
    /* of a crowded sweep in a space of numbers (acquisition_schedule.h) */
    bool is_wide = surrogate_is_objective(t->spec->target) && !t->s->enc->n_category;
    return is_wide ? WARP_PLAIN_WIDE : WARP_PLAIN;
}

static as_status transform_values(struct surrogate_task *t, struct surrogate *ret,
                                  struct as_err *err)
{
    if (t->spec->target == SURROGATE_FAILURE) {
        standardise_failures(t, ret);
        return AS_OK;
    }
    as_status st = gp_warp_create(surrogate_warp_kind(t), t->y, t->n_done, &ret->warp, err);
    if (st < 0)
        return st;
    if (t->n_done)
        memcpy(t->y, gp_warp_values(ret->warp), t->n_done * sizeof *t->y);
    return AS_OK;
}

/* ---- rows ---- */

static void copy_row(const struct surrogate_task *t, size_t trial, double *x, int32_t *z)
{
    size_t n_real = t->s->columns.n_real, n_cat = t->s->columns.n_cat;
    memcpy(x, t->s->x + trial * n_real, n_real * sizeof *x);
    memcpy(z, t->s->z + trial * n_cat, n_cat * sizeof *z);
}

void surrogate_rows_done(struct surrogate_rows *g)
{
    free(g->x);
    free(g->y);
    free(g->cost);
    free(g->z);
    free(g->steps);
}

as_status surrogate_gather(const struct surrogate_task *t, const size_t *places, size_t n,
                           struct surrogate_rows *ret, struct as_err *err)
{
    size_t n_real = t->s->columns.n_real, n_cat = t->s->columns.n_cat;
    struct surrogate_rows g = {.n = n,
                               .x = as_calloc(n, n_real * sizeof *g.x),
                               .y = as_calloc(n, sizeof *g.y),
                               .cost = as_calloc(n, sizeof *g.cost),
                               .steps = t->columns.has_steps ? as_calloc(n, sizeof *g.steps) : NULL,
                               .z = as_calloc(n, n_cat * sizeof *g.z)};
    if (!g.x || !g.y || !g.cost || !g.z || (t->columns.has_steps && !g.steps)) {
        surrogate_rows_done(&g);
        return out_of_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        copy_row(t, t->done[places[i]], g.x + i * n_real, g.z + i * n_cat);
        g.y[i] = t->y[places[i]];
        g.cost[i] = t->cost[places[i]];
        if (g.steps)
            g.steps[i] = surrogate_step(t, places[i]);
    }
    *ret = g;
    return AS_OK;
}

/* Half of the rows are spread points, the rest are best and newest. */
static struct gp_subset_size subset_shares(size_t rows)
{
    return (struct gp_subset_size){rows / 4, rows / 4, rows - 2 * (rows / 4)};
}

as_status surrogate_thin(const struct surrogate_task *t, size_t *places, size_t *n, size_t max,
                         struct as_err *err)
{
    if (*n <= max)
        return AS_OK;
    AS_AUTO(surrogate_rows_done) struct surrogate_rows g = {0};
    AS_AUTO(as_freep) size_t *chosen = as_calloc(max, sizeof *chosen);
    if (!chosen)
        return out_of_memory(err);
    as_status st = surrogate_gather(t, places, *n, &g, err);
    if (st < 0)
        return st;
    struct gp_subset_size size = subset_shares(max);
    st = gp_subset(&t->s->columns, &(struct gp_rows){g.n, g.x, g.z}, g.cost, &size, chosen, n, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < *n; i++)
        places[i] = places[chosen[i]];
    return AS_OK;
}

static uint64_t digest_of(const struct surrogate_task *t, const size_t *places, size_t n)
{
    uint64_t h = t->s->enc->bends ? rng_mix(n, t->s->enc->bends) : n;
    for (size_t k = 0; k < t->s->enc->n_dead; k++) {
        const struct dead_pair *p = &t->s->enc->dead[k];
        h = rng_mix(rng_mix(h, rng_mix(p->param, p->choice)), p->level);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &t->cost[places[i]], sizeof bits);
        h = rng_mix(rng_mix(h, surrogate_number(t, places[i])), bits);
        if (!t->columns.has_steps)
            continue;
        double step = surrogate_step(t, places[i]);
        memcpy(&bits, &step, sizeof bits);
        h = rng_mix(h, bits);
    }
    return h;
}

/* Every suggestion needs the chosen base, and it changes only with a fit, so it is kept. */
static as_status thin_base(struct surrogate_task *t, size_t *places, size_t *n, struct as_err *err)
{
    size_t max = t->spec->max_rows;
    if (t->columns.has_steps && max > SURROGATE_RUNG_ROWS)
        max = SURROGATE_RUNG_ROWS;
    if (*n <= max)
        return AS_OK;
    struct surrogate_subset *memo = &t->store->subset[t->slot];
    uint64_t digest = digest_of(t, places, *n);
    if (memo->chosen && memo->n == *n && memo->digest == digest) {
        *n = memo->n_chosen;
        memcpy(places, memo->chosen, *n * sizeof *places);
        return AS_OK;
    }
    size_t from = *n;
    as_status st = surrogate_thin(t, places, n, max, err);
    if (st < 0)
        return st;
    size_t *keep = as_calloc(*n, sizeof *keep);
    if (!keep)
        return out_of_memory(err);
    memcpy(keep, places, *n * sizeof *keep);
    free(memo->chosen);
    *memo = (struct surrogate_subset){from, *n, digest, keep};
    return AS_OK;
}

/* Room for the rows: of the trials with a value, and of the pending and stopped ones, some of which
 * may have both. */
static as_status reserve_rows(struct surrogate_task *t, struct as_err *err)
{
    size_t n_real = t->s->columns.n_real, n_cat = t->s->columns.n_cat;
    size_t n = t->n_done + t->s->n_pending + t->s->n_partial;
    free(t->order);
    t->order = as_calloc(n, sizeof *t->order);
    t->row_y = t->row_y ? t->row_y : as_calloc(n, sizeof *t->row_y);
    t->x = t->x ? t->x : as_calloc(n, n_real * sizeof *t->x);
    t->z = t->z ? t->z : as_calloc(n, n_cat * sizeof *t->z);
    if (t->columns.has_steps && !t->steps)
        t->steps = as_calloc(n, sizeof *t->steps);
    bool ok = t->order && t->row_y && t->x && t->z && (t->steps || !t->columns.has_steps);
    return ok ? AS_OK : out_of_memory(err);
}

/* Set row r to a trial at a step. */
static void set_row(struct surrogate_task *t, size_t r, size_t trial, double step)
{
    copy_row(t, trial, t->x + r * t->s->columns.n_real, t->z + r * t->s->columns.n_cat);
    if (t->steps)
        t->steps[r] = step;
}

/* A trial that stopped at a rung. */
struct stopped {
    double place, cost; /* at its highest rung */
    size_t trial;
};

/* The higher the rung the better, then by the cost there. */
static int by_rung(const void *a, const void *b)
{
    const struct stopped *p = a, *q = b;
    if (p->place != q->place)
        return p->place > q->place ? -1 : 1;
    if (p->cost != q->cost)
        return p->cost < q->cost ? -1 : 1;
    return (p->trial > q->trial) - (p->trial < q->trial);
}

static int by_trial(const void *a, const void *b)
{
    const struct stopped *p = a, *q = b;
    return (p->trial > q->trial) - (p->trial < q->trial);
}

/* Add the rows of stopped trials, which count as pending at the last step: what is not known there
 * would not be found out by another trial of the same configuration, which would stop too. Without
 * these rows suggestions repeat the best of them. */
static as_status add_stopped(struct surrogate_task *t, struct as_err *err)
{
    const struct training_set *s = t->s;
    size_t n = 0;
    if (!t->columns.has_steps || !s->n_partial)
        return AS_OK;
    AS_AUTO(as_freep) struct stopped *list = as_calloc(s->n_partial, sizeof *list);
    if (!list)
        return out_of_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        const struct training_rung *rung = training_set_rung(s, i);
        if (rung && s->state[i] == OBSERVED_PARTIAL)
            list[n++] = (struct stopped){rung->place, rung->costs[0], i};
    }
    qsort(list, n, sizeof *list, by_rung);
    n = n < SURROGATE_STOPPED_ROWS ? n : SURROGATE_STOPPED_ROWS;
    qsort(list, n, sizeof *list, by_trial);
    for (size_t k = 0; k < n; k++)
        set_row(t, t->n_all++, list[k].trial, 1);
    return AS_OK;
}

/* Rows in their order: base, later ones, pending ones. */
static as_status order_rows(struct surrogate_task *t, struct as_err *err)
{
    size_t n = 0;
    as_status st = reserve_rows(t, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < t->n_done; i++) {
        if (t->fit.in_fit[i])
            t->order[n++] = i;
    }
    t->n_fit = n;
    if ((st = thin_base(t, t->order, &n, err)) < 0)
        return st;
    t->n_base = n;
    for (size_t i = 0; i < t->n_done; i++) {
        if (!t->fit.in_fit[i])
            t->order[n++] = i;
    }
    for (size_t r = 0; r < n; r++) {
        t->row_y[r] = t->y[t->order[r]];
        set_row(t, r, t->done[t->order[r]], surrogate_step(t, t->order[r]));
    }
    t->n_all = n;
    for (size_t i = 0; i < t->s->n; i++)
        if (t->s->state[i] == OBSERVED_PENDING)
            set_row(t, t->n_all++, i, 1);
    return add_stopped(t, err);
}

/* Does a kept model have these columns? What is learned of the parameters changes them. */
static bool has_columns(const struct gp_model *m, const struct gp_columns *c)
{
    const struct gp_columns *own = gp_model_columns(m);
    return own->n_real == c->n_real && own->n_cat == c->n_cat && own->n_groups == c->n_groups &&
           memcmp(own->group, c->group, c->n_real * sizeof *c->group) == 0;
}

as_status surrogate_build(struct surrogate_task *t, struct as_err *err)
{
    struct gp_model **m = &t->store->models[t->slot];
    if (*m && !has_columns(*m, &t->columns)) {
        gp_model_free(*m);
        *m = NULL;
    }
    as_status st = *m ? AS_OK : gp_model_create(&t->columns, m, err);
    if (st < 0)
        return st;
    st = order_rows(t, err);
    if (st < 0)
        return st;
    struct gp_rows rows = {t->n_all, t->x, t->z, t->steps};
    st = gp_model_build(*m, t->fit.theta, &rows, t->n_base, err);
    return st < 0 ? st : gp_model_observe(*m, t->row_y, surrogate_n_valued(t), err);
}

/* Fill ret->trials. */
static as_status list_trials(const struct surrogate_task *t, struct surrogate *ret,
                             struct as_err *err)
{
    size_t n = surrogate_n_valued(t);
    ret->trials = as_calloc(n, sizeof *ret->trials);
    if (!ret->trials || !t->order)
        return out_of_memory(err);
    for (size_t r = 0; r < n; r++)
        ret->trials[r] = t->rung[t->order[r]] ? TRAINING_SET_NONE : t->done[t->order[r]];
    return AS_OK;
}

static as_status fit_reserve(const struct surrogate_task *t, struct surrogate_fit *f,
                             struct as_err *err)
{
    f->theta = as_calloc(gp_n_theta(&t->columns), sizeof *f->theta);
    f->scale = as_calloc(gp_n_theta(&t->columns), sizeof *f->scale);
    f->in_fit = as_calloc(t->n_done, sizeof *f->in_fit);
    return f->theta && f->scale && f->in_fit ? AS_OK : out_of_memory(err);
}

/* The smooth model of a large space that declares nothing: of many parameters some mean little, and
 * results cannot tell a large variance with long lengthscales from one of 1 with shorter ones
 * (decision 4037). */
static bool is_unit(const struct surrogate_task *t)
{
    const struct encoding *e = t->s->enc;
    return t->columns.is_smooth && !t->columns.has_steps && e->n_category > 0 &&
           !e->has_conditions && e->n >= UNIT_PARAMETERS;
}

as_status surrogate_prepare(struct surrogate_store *store, const struct training_set *s,
                            const struct surrogate_spec *spec, const json_t *state,
                            struct surrogate *ret, struct as_err *err)
{
    AS_AUTO(task_done)
    struct surrogate_task t = {
        .store = store, .s = s, .spec = spec, .slot = slot_of(spec), .columns = s->columns};
    AS_AUTO(surrogate_done) struct surrogate made = {.target = spec->target};
    t.columns.is_smooth = spec->target == SURROGATE_SMOOTH;
    t.columns.is_exact = s->spec->is_exact && surrogate_is_objective(spec->target);
    t.columns.has_steps = s->rungs && surrogate_is_objective(spec->target);
    t.columns.is_unit = is_unit(&t);
    as_status st = collect_values(&t, err);
    if (st < 0 || (st = fit_reserve(&t, &t.fit, err)) < 0 ||
        (st = fit_reserve(&t, &t.next, err)) < 0)
        return st;
    st = transform_values(&t, &made, err);
    if (st < 0)
        return st;
    if (!t.n_done)
        return as_fail(err, AS_E_NUMERIC, "no trial has a value yet");
    surrogate_read_state(&t, state);
    st = surrogate_is_guided(&t) ? surrogate_settle_guided(&t, &made, err)
                                 : surrogate_settle(&t, &made, err);
    if (st < 0 || (st = surrogate_write_state(&t, &made.state, err)) < 0 ||
        (st = list_trials(&t, &made, err)) < 0)
        return st;
    made.model = store->models[t.slot];
    made.fit_rows = t.n_fit;
    made.evals = t.evals;
    made.n_values = t.n_done;
    *ret = made;
    made = (struct surrogate){0};
    return AS_OK;
}
