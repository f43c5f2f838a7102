/* Reads and writes the field `prior`. Weights have texts as keys because JSON objects have no
 * others; a key that two values share ("1" and 1) is refused, because it would mean both. A
 * deviation has to be finite and above 0; how far a prior may mislead is bounded where it is used
 * (decision 4010). */
#include "search/space/param_prior.h"

#include <math.h>
#include <stdlib.h>

#include "base/str.h"

void param_prior_free(struct param_prior *b)
{
    if (b)
        free(b->weights);
    free(b);
}

/* The key of a value in `weights`: a string is itself, anything else its JSON text. Owned by the
 * caller; NULL when memory is out. */
static char *key_of(const json_t *value)
{
    return json_is_string(value) ? as_strdup(json_string_value(value)) : json_format(value);
}

static as_status has_key(const json_t *value, const char *key, bool *ret, struct as_err *err)
{
    if (json_is_string(value)) {
        *ret = as_streq(json_string_value(value), key);
        return AS_OK;
    }
    AS_AUTO(as_freep) char *name = json_format(value);
    if (!name)
        return as_fail_nomem(err);
    *ret = as_streq(name, key);
    return AS_OK;
}

/* *ret is the value's place, or n_values. A key that two values have ("1" and 1) is refused. */
static as_status find_value(const struct space_param *p, const char *key, const char *at,
                            size_t *ret, struct as_err *err)
{
    *ret = p->n_values;
    for (size_t i = 0; i < p->n_values; i++) {
        bool is_it = false;
        as_status st = has_key(json_array_get(p->values, i), key, &is_it, err);
        if (st < 0)
            return st;
        if (is_it && *ret < p->n_values)
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: two values of the parameter are written so; give one of them "
                              "another text, or leave prior out",
                              at);
        if (is_it)
            *ret = i;
    }
    return AS_OK;
}

static as_status read_weight(struct json_fields *list, const struct space_param *p, const char *key,
                             struct param_prior *b, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    size_t i;
    json_pointer_child(list->pointer, key, at);
    as_status st = find_value(p, key, at, &i, err);
    if (st < 0)
        return st;
    if (i == p->n_values)
        return as_fail_at(err, AS_E_INVAL, at, "%s: '%.60s' is no value of the parameter", at, key);
    return json_fields_double(list, key, JSON_REQUIRED, PARAM_PRIOR_LEAST_WEIGHT,
                              PARAM_PRIOR_MOST_WEIGHT, &b->weights[i], err);
}

static as_status read_weights(struct json_fields *f, const struct space_param *p,
                              struct param_prior *b, struct as_err *err)
{
    struct json_fields list;
    json_t *weights = NULL;
    char at[AS_ERR_POINTER_MAX];
    as_status st = json_fields_object(f, "weights", JSON_REQUIRED, &weights, err);
    if (st < 0 || !weights)
        return st;
    json_pointer_child(f->pointer, "weights", at);
    st = json_fields_under(&list, f, weights, at, err);
    if (st < 0)
        return st;
    if (!(b->weights = as_calloc(p->n_values, sizeof *b->weights)))
        return as_fail_nomem(err);
    for (size_t i = 0; i < p->n_values; i++)
        b->weights[i] = 1;
    const char *key;
    json_t *value;
    json_object_foreach(weights, key, value)
    {
        st = json_fields_note(f, read_weight(&list, p, key, b, err), err);
        if (st < 0)
            return st;
    }
    if (list.is_faulty && !f->is_faulty) {
        f->is_faulty = true;
        f->first = list.first;
    }
    return AS_OK;
}

static as_status read_normal(struct json_fields *f, const struct space_param *p,
                             struct param_prior *b, struct as_err *err)
{
    bool is_int = p->kind == PARAM_INT;
    double min = is_int ? (double)p->integer.min : p->real.min;
    double max = is_int ? (double)p->integer.max : p->real.max;
    as_status st = json_fields_double(f, "mean", JSON_REQUIRED, min, max, &b->mean, err);
    if (st < 0)
        return st;
    b->deviation = 1;
    st = json_fields_double(f, "deviation", JSON_REQUIRED, -INFINITY, INFINITY, &b->deviation, err);
    if (st < 0 || b->deviation > 0)
        return st;
    char at[AS_ERR_POINTER_MAX], found[32];
    json_pointer_child(f->pointer, "deviation", at);
    st = as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected a number above 0", at,
                    as_format_double(b->deviation, found, sizeof found));
    return json_fields_note(f, st, err);
}

as_status param_prior_parse(struct json_fields *f, struct space_param *p, struct as_err *err)
{
    struct json_fields g;
    json_t *j = NULL;
    char at[AS_ERR_POINTER_MAX];
    as_status st = json_fields_object(f, "prior", JSON_OPTIONAL, &j, err);
    if (st < 0 || !j)
        return st;
    json_pointer_child(f->pointer, "prior", at);
    if (p->kind == PARAM_CONSTANT)
        return json_fields_note(
            f, as_fail_at(err, AS_E_INVAL, at, "%s: a constant has one value; leave prior out", at),
            err);
    AS_AUTO(param_prior_freep) struct param_prior *b = as_calloc(1, sizeof *b);
    if (!b)
        return as_fail_nomem(err);
    st = json_fields_under(&g, f, j, at, err);
    if (st < 0)
        return st;
    st = param_is_choice(p) ? read_weights(&g, p, b, err) : read_normal(&g, p, b, err);
    if (st < 0)
        return st;
    st = json_fields_end(&g, err);
    if (st == AS_OK && !g.is_faulty)
        p->prior = as_steal(b);
    return json_fields_note(f, st, err);
}

json_t *param_prior_to_json(const struct space_param *p)
{
    const struct param_prior *b = p->prior;
    if (!b->weights)
        return json_pack("{s:f, s:f}", "mean", b->mean, "deviation", b->deviation);
    JSON_AUTO weights = json_object();
    int bad = weights ? 0 : -1;
    for (size_t i = 0; i < p->n_values && !bad; i++) {
        if (b->weights[i] == 1)
            continue;
        AS_AUTO(as_freep) char *key = key_of(json_array_get(p->values, i));
        bad = key ? json_object_set_new(weights, key, json_real(b->weights[i])) : -1;
    }
    return bad ? NULL : json_pack("{s:O}", "weights", weights);
}
