/* Conditions on one parameter: parsing, testing, intersecting.
 *
 * The ends of a range are moved to values that the parameter takes. So an empty range is found at
 * parsing, and for discrete parameters every test is a comparison of values. A list of allowed
 * values is kept sorted, so a test is a binary search. To find a value that meets several
 * conditions it is enough to try the values of a list or the highest low end: with ranges alone,
 * either that end is in all of them or no value is. */
#include "search/space/cond.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"

void cond_done(struct cond *c)
{
    free(c->allowed);
    *c = (struct cond){0};
}

/* ---- ranges ---- */

static union param_value lowest_value(const struct space_param *p)
{
    return param_levels(p) ? param_level(p, 0) : (union param_value){.real = p->real.min};
}

static union param_value highest_value(const struct space_param *p)
{
    uint64_t levels = param_levels(p);
    return levels ? param_level(p, levels - 1) : (union param_value){.real = p->real.max};
}

/* Find the first value of a discrete p that is not below `at`, or, if `last`, the last value not
 * above it. False: there is none. */
static bool nearest_level(const struct space_param *p, union param_value at, bool last,
                          union param_value *ret)
{
    uint64_t lo = 0, n = param_levels(p), hi = n;
    while (lo < hi) { /* the number of levels below `at` (last: not above it) */
        uint64_t mid = lo + (hi - lo) / 2;
        int order = param_compare(p, param_level(p, mid), at);
        if (order < 0 || (last && order == 0))
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == (last ? 0 : n))
        return false;
    *ret = param_level(p, last ? lo - 1 : lo);
    return true;
}

/* Convert a number to a value of p's kind; for an int, to the next whole number inside the
 * range. */
static union param_value end_value(const struct space_param *p, const json_t *j, bool last)
{
    double v = json_number_value(j) + 0.0; /* -0.0 becomes 0.0 */
    if (p->kind == PARAM_FLOAT)
        return (union param_value){.real = v};
    if (json_is_integer(j))
        return (union param_value){.integer = json_integer_value(j)};
    v = last ? floor(v) : ceil(v);
    if (fabs(v) >= 0x1p63)
        return (union param_value){.integer = v > 0 ? INT64_MAX : INT64_MIN};
    return (union param_value){.integer = (int64_t)v};
}

/* Read an end of a range on numbers and move it to a value that p takes. */
static as_status number_end(const struct space_param *p, const json_t *j, const char *pointer,
                            bool last, union param_value *ret, struct as_err *err)
{
    if (!json_is_number(j))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %s, expected a number", pointer,
                          json_type_name(j));
    union param_value v = end_value(p, j, last);
    if (param_levels(p) ? nearest_level(p, v, last, ret)
                        : (last ? v.real >= p->real.min : v.real <= p->real.max)) {
        if (param_levels(p) == 0)
            ret->real = fmin(fmax(v.real, p->real.min), p->real.max);
        return AS_OK;
    }
    return as_fail_at(err, AS_E_INVAL, pointer, "%s: '%s' never takes a value in this range",
                      pointer, p->name);
}

/* Read min of a range, or, if `last`, max. If it is absent, *ret keeps the parameter's own end. */
static as_status parse_end(const struct space_param *p, struct json_fields *f, bool last,
                           bool *ret_given, union param_value *ret, struct as_err *err)
{
    const char *name = last ? "max" : "min";
    json_t *j = NULL;
    as_status st = json_fields_any(f, name, JSON_OPTIONAL, &j, err);
    *ret_given |= j != NULL;
    if (st < 0 || !j)
        return st;
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, name, at);
    if (p->kind != PARAM_ORDINAL)
        return number_end(p, j, at, last, ret, err);
    st = param_value_from_json(p, j, at, ret, err);
    return st < 0 ? as_err_prefix(err, st, "'%s' never takes this value", p->name) : AS_OK;
}

static as_status parse_range(const struct space_param *p, const json_t *j, const char *pointer,
                             struct cond *ret, struct as_err *err)
{
    struct json_fields f;
    bool given = false;
    if (p->kind != PARAM_FLOAT && p->kind != PARAM_INT && p->kind != PARAM_ORDINAL)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: the values of '%s' have no order; a range needs a float, int or "
                          "ordinal parameter",
                          pointer, p->name);
    struct cond c = {.is_range = true, .low = lowest_value(p), .high = highest_value(p)};
    as_status st = json_fields_init(&f, j, pointer, err);
    if (st < 0)
        return st;
    st = parse_end(p, &f, false, &given, &c.low, err);
    if (st < 0)
        return st;
    st = parse_end(p, &f, true, &given, &c.high, err);
    if (st < 0)
        return st;
    st = json_fields_end(&f, err);
    if (st < 0)
        return st;
    if (!given)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: expected min, max or both", pointer);
    if (param_compare(p, c.low, c.high) > 0)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: '%s' never takes a value in this range",
                          pointer, p->name);
    *ret = c;
    return AS_OK;
}

/* ---- lists ---- */

static void sort_values(const struct space_param *p, union param_value *v, size_t n)
{
    /* insertion: lists are short and mostly sorted already; qsort has no argument for p */
    for (size_t i = 1; i < n; i++) {
        union param_value x = v[i];
        size_t k = i;
        for (; k > 0 && param_compare(p, v[k - 1], x) > 0; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

static as_status parse_list(const struct space_param *p, const json_t *j, const char *pointer,
                            struct cond *ret, struct as_err *err)
{
    size_t n = json_is_array(j) ? json_array_size(j) : 1;
    if (n == 0)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: the list is empty, expected a value of '%s'", pointer, p->name);
    if (n > PARAM_MAX_VALUES)
        return as_fail_at(err, AS_E_TOO_LARGE, pointer, "%s: %zu values, at most %d are allowed",
                          pointer, n, PARAM_MAX_VALUES);
    AS_AUTO(as_freep) union param_value *allowed = as_calloc(n, sizeof *allowed);
    if (!allowed)
        return as_fail(err, AS_E_NOMEM, "out of memory for a condition");
    for (size_t i = 0; i < n; i++) {
        char item[AS_ERR_POINTER_MAX];
        if (json_is_array(j))
            json_pointer_index(pointer, i, item);
        else
            (void)snprintf(item, sizeof item, "%s", pointer);
        as_status st = param_value_from_json(p, json_is_array(j) ? json_array_get(j, i) : j, item,
                                             &allowed[i], err);
        if (st < 0)
            return as_err_prefix(err, st, "'%s' never takes this value", p->name);
    }
    sort_values(p, allowed, n);
    for (size_t i = 1; i < n; i++)
        if (param_compare(p, allowed[i - 1], allowed[i]) == 0)
            return as_fail_at(err, AS_E_INVAL, pointer, "%s: a value is there twice", pointer);
    *ret = (struct cond){.allowed = as_steal(allowed), .n_allowed = n};
    return AS_OK;
}

as_status cond_parse(const struct space_param *p, const json_t *j, const char *pointer,
                     struct cond *ret, struct as_err *err)
{
    return json_is_object(j) ? parse_range(p, j, pointer, ret, err)
                             : parse_list(p, j, pointer, ret, err);
}

/* ---- meaning ---- */

bool cond_holds(const struct space_param *p, const struct cond *c, union param_value v)
{
    if (c->is_range)
        return param_compare(p, v, c->low) >= 0 && param_compare(p, v, c->high) <= 0;
    size_t lo = 0, hi = c->n_allowed;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (param_compare(p, c->allowed[mid], v) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < c->n_allowed && param_compare(p, c->allowed[lo], v) == 0;
}

static bool all_hold(const struct space_param *p, const struct cond *const *conds, size_t n,
                     union param_value v)
{
    for (size_t i = 0; i < n; i++)
        if (!cond_holds(p, conds[i], v))
            return false;
    return true;
}

bool cond_meet(const struct space_param *p, const struct cond *const *conds, size_t n,
               union param_value *ret)
{
    union param_value low = lowest_value(p);
    for (size_t i = 0; i < n; i++) {
        if (conds[i]->is_range) {
            if (param_compare(p, conds[i]->low, low) > 0)
                low = conds[i]->low;
            continue;
        }
        for (size_t k = 0; k < conds[i]->n_allowed; k++) {
            if (all_hold(p, conds, n, conds[i]->allowed[k])) {
                *ret = conds[i]->allowed[k];
                return true;
            }
        }
        return false;
    }
    /* only ranges are left: their ends are values of p, so either the highest low end is in all of
     * them, or no value is */
    if (!all_hold(p, conds, n, low))
        return false;
    *ret = low;
    return true;
}

static json_t *range_to_json(const struct space_param *p, const struct cond *c)
{
    JSON_AUTO j = json_object();
    int bad = json_object_set_new(j, "min", param_value_to_json(p, c->low));
    bad |= json_object_set_new(j, "max", param_value_to_json(p, c->high));
    return bad ? NULL : as_steal(j);
}

json_t *cond_to_json(const struct space_param *p, const struct cond *c)
{
    if (c->is_range)
        return range_to_json(p, c);
    JSON_AUTO list = json_array();
    int bad = 0;
    for (size_t i = 0; i < c->n_allowed; i++)
        bad |= json_array_append_new(list, param_value_to_json(p, c->allowed[i]));
    return bad ? NULL : as_steal(list);
}
