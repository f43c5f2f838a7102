#include "bench/search/disguise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/rng.h"

struct mask {
    size_t inner;  /* the parameter that it stands for */
    bool mirrored; /* a number */
    double unit;   /* of a float: its values are those of the inner one times this */
    size_t *order; /* of a categorical: the inner index of each of its values */
};

struct disguise {
    const struct space *inner;
    size_t n;
    struct mask *masks; /* in the order of the disguised document */
};

void disguise_free(struct disguise *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->n && d->masks != NULL; i++)
        free(d->masks[i].order);
    free(d->masks);
    free(d);
}

/* A hash of (number, a, b) in [0,1). */
static double hashed(unsigned number, unsigned a, unsigned b)
{
    uint32_t w[4];
    philox4x32(7702, 900 + number, (uint64_t)a << 32 | b, w);
    return w[0] / 4294967296.0;
}

/* 0 to n - 1 in an order drawn by (number, which). NULL: out of memory. */
static size_t *permuted(size_t n, unsigned number, unsigned which)
{
    size_t *order = as_calloc(n, sizeof *order);
    for (size_t i = 0; order != NULL && i < n; i++) {
        size_t j = (size_t)(hashed(number, which, (unsigned)i) * (double)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

/* The number that stands at v's place: the inner value, of a mirrored value. Its own inverse. */
static double mirror(const struct space_param *p, double v)
{
    double low = p->kind == PARAM_FLOAT ? p->real.min : (double)p->integer.min;
    double high = p->kind == PARAM_FLOAT ? p->real.max : (double)p->integer.max;
    v = p->scale == SCALE_LOG ? low * high / v : low + high - v;
    return fmin(high, fmax(low, v));
}

/* May it be mirrored? Not where the mirror of a value is none. */
static bool has_mirror(const struct space_param *p)
{
    return p->kind == PARAM_FLOAT ? p->real.step == 0
                                  : p->scale != SCALE_LOG && p->integer.step == 1;
}

/* Values in another order: a new array. */
static json_t *reordered(const json_t *values, const size_t *order)
{
    json_t *out = json_array();
    for (size_t k = 0; k < json_array_size(values); k++)
        (void)json_array_append(out, json_array_get(values, order[k]));
    return out;
}

/* The document of one parameter as the mask has it: a new reference. */
static json_t *masked(const struct space_param *p, const json_t *doc, const struct mask *m)
{
    json_t *out = json_deep_copy(doc);
    if (m->order != NULL) {
        (void)json_object_set_new(out, "values", reordered(p->values, m->order));
    } else if (p->kind == PARAM_FLOAT && m->unit != 1) {
        (void)json_object_set_new(out, "min", json_real(p->real.min * m->unit));
        (void)json_object_set_new(out, "max", json_real(p->real.max * m->unit));
    }
    return out;
}

static as_status mask_draw(const struct space_param *p, unsigned number, struct mask *m,
                           struct as_err *err)
{
    static const double units[] = {1, 1024, 1. / 64, 8};
    unsigned which = (unsigned)m->inner;
    m->unit = 1;
    if (p->n_conds > 0)
        return as_fail(err, AS_E_INVAL, "%s has a condition", p->name);
    if (p->kind == PARAM_CATEGORICAL) {
        m->order = permuted(p->n_values, number, 1 + which);
        return m->order != NULL ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
    }
    if (param_is_choice(p) || !has_mirror(p))
        return AS_OK;
    m->mirrored = hashed(number, 500, which) < 0.5;
    if (p->kind == PARAM_FLOAT)
        m->unit = units[(unsigned)(4 * hashed(number, 501, which))];
    return AS_OK;
}

as_status disguise_create(const struct space *inner, const json_t *parameters, unsigned number,
                          json_t **ret_parameters, struct disguise **ret, struct as_err *err)
{
    AS_AUTO(disguise_freep) struct disguise *d = as_calloc(1, sizeof *d);
    AS_AUTO(as_freep) size_t *order = permuted(inner->n, number, 0);
    JSON_AUTO out = json_object();
    if (d == NULL || order == NULL || out == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    d->inner = inner;
    d->masks = as_calloc(inner->n, sizeof *d->masks);
    if (d->masks == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    d->n = inner->n;
    for (size_t i = 0; i < d->n; i++) {
        struct mask *m = &d->masks[i];
        const struct space_param *p = &inner->params[order[i]];
        char name[24];
        m->inner = order[i];
        as_status st = mask_draw(p, number, m, err);
        if (st < 0)
            return st;
        (void)snprintf(name, sizeof name, "%c%zu", (char)('a' + (7 * i + number) % 26), i);
        if (json_object_set_new(out, name, masked(p, json_object_get(parameters, p->name), m)) < 0)
            return as_fail(err, AS_E_NOMEM, "out of memory");
    }
    *ret_parameters = as_steal(out);
    *ret = as_steal(d);
    return AS_OK;
}

struct config *disguise_remove(const struct disguise *d, const struct config *c)
{
    struct config *out = config_create(d->inner);
    for (size_t i = 0; out != NULL && i < d->n; i++) {
        const struct mask *m = &d->masks[i];
        const struct space_param *p = &d->inner->params[m->inner];
        struct config_entry *e = &out->entries[m->inner];
        *e = c->entries[i];
        if (m->order != NULL)
            e->value.choice = m->order[e->value.choice];
        else if (p->kind == PARAM_FLOAT)
            e->value.real = fmin(p->real.max, fmax(p->real.min, e->value.real / m->unit));
        if (m->mirrored && p->kind == PARAM_FLOAT)
            e->value.real = mirror(p, e->value.real);
        else if (m->mirrored)
            e->value.integer = (int64_t)mirror(p, (double)e->value.integer);
    }
    return out;
}
