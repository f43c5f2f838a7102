/* A parameter and its values as JSON: the object of the document is checked field by field, and
 * written back with its defaults; a value is read as people write it (1e6 for an int, 0.1 + 0.2 for
 * 0.3) and becomes exactly one of the parameter's values. What those are is in param.c. */
#include "search/space/param.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "search/space/param_prior.h"

/* Every whole number up to here is a double, so a whole real may stand for an int. */
#define DOUBLE_EXACT 9007199254740992.0

static const char *const kind_words[] = {"float", "int",      "categorical", "ordinal",
                                         "bool",  "constant", NULL};
static const char *const scale_words[] = {"linear", "log", NULL};

/* ---- values ---- */

json_t *param_value_to_json(const struct space_param *p, union param_value v)
{
    switch (p->kind) {
    case PARAM_FLOAT:
        return json_real(v.real);
    case PARAM_INT:
        return json_integer(v.integer);
    default:
        return json_clone(json_array_get(p->values, v.choice));
    }
}

/* Read a whole number, or a real that is whole: people write 1e6 for a million. */
static bool get_integer(const json_t *j, int64_t *ret)
{
    if (json_is_integer(j)) {
        *ret = json_integer_value(j);
        return true;
    }
    double d = json_is_real(j) ? json_real_value(j) : NAN;
    if (!(fabs(d) <= DOUBLE_EXACT) || d != floor(d))
        return false;
    *ret = (int64_t)d;
    return true;
}

static bool same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        int64_t i, k;
        if (get_integer(a, &i) && get_integer(b, &k))
            return i == k;
        return json_number_value(a) == json_number_value(b);
    }
    if (!json_is_array(a) || !json_is_array(b) || json_array_size(a) != json_array_size(b))
        return json_equal(a, b);
    for (size_t k = 0; k < json_array_size(a); k++)
        if (!same_value(json_array_get(a, k), json_array_get(b, k)))
            return false;
    return true;
}

static as_status wrong_value(const json_t *found, const char *pointer, const char *expected,
                             struct as_err *err)
{
    AS_AUTO(as_freep)
    char *text = json_is_object(found) || json_is_array(found) ? NULL : json_format(found);
    return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %.80s, expected %s", pointer,
                      text ? text : json_type_name(found), expected);
}

static as_status float_from_json(const struct space_param *p, const json_t *j, const char *pointer,
                                 union param_value *ret, struct as_err *err)
{
    union param_value v = {.real = json_is_number(j) ? json_number_value(j) : NAN};
    if (v.real >= p->real.min && v.real <= p->real.max && p->real.step > 0) {
        double level = param_level(p, param_level_of(p, v)).real;
        if (fabs(level - v.real) <= 1e-9 * p->real.step)
            v.real = level; /* 0.1 + 0.2 is meant to be 0.3 */
    }
    v.real += 0.0; /* -0.0 becomes 0.0: equal values have equal text */
    if (!param_contains(p, v)) {
        char expected[160], min[32], max[32], step[32];
        int n = snprintf(expected, sizeof expected, "a number from %s to %s",
                         as_format_double(p->real.min, min, sizeof min),
                         as_format_double(p->real.max, max, sizeof max));
        if (p->real.step > 0)
            (void)snprintf(expected + n, sizeof expected - (size_t)n, " in steps of %s",
                           as_format_double(p->real.step, step, sizeof step));
        return wrong_value(j, pointer, expected, err);
    }
    *ret = v;
    return AS_OK;
}

static as_status int_from_json(const struct space_param *p, const json_t *j, const char *pointer,
                               union param_value *ret, struct as_err *err)
{
    union param_value v = {0};
    if (!get_integer(j, &v.integer) || !param_contains(p, v)) {
        char expected[160];
        int n = snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64,
                         p->integer.min, p->integer.max);
        if (p->integer.step > 1)
            (void)snprintf(expected + n, sizeof expected - (size_t)n, " in steps of %" PRIu64,
                           p->integer.step);
        return wrong_value(j, pointer, expected, err);
    }
    *ret = v;
    return AS_OK;
}

as_status param_value_from_json(const struct space_param *p, const json_t *j, const char *pointer,
                                union param_value *ret, struct as_err *err)
{
    if (p->kind == PARAM_FLOAT)
        return float_from_json(p, j, pointer, ret, err);
    if (p->kind == PARAM_INT)
        return int_from_json(p, j, pointer, ret, err);
    for (size_t i = 0; i < p->n_values; i++) {
        if (same_value(j, json_array_get(p->values, i))) {
            *ret = (union param_value){.choice = i};
            return AS_OK;
        }
    }
    AS_AUTO(as_freep) char *list = json_format(p->values);
    char expected[200];
    (void)snprintf(expected, sizeof expected, "one of %.180s", list ? list : "its values");
    return wrong_value(j, pointer, expected, err);
}

/* ---- the domain ---- */

/* as_fail_at for the field `name` below f, whose pointer starts the message too. */
static as_status refuse_field(const struct json_fields *f, const char *name, struct as_err *err,
                              as_status code, const char *what)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, name, at);
    return as_fail_at(err, code, at, "%s: %s", at, what);
}

static as_status take_integer(struct json_fields *f, const char *name, json_need need, int64_t *ret,
                              struct as_err *err)
{
    json_t *j = NULL;
    as_status st = json_fields_any(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!get_integer(j, ret)) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f->pointer, name, at);
        return json_fields_note(f, wrong_value(j, at, "a whole number", err), err);
    }
    return AS_OK;
}

static as_status parse_scale_points(struct json_fields *f, struct space_param *p,
                                    struct as_err *err)
{
    int scale = SCALE_LINEAR;
    as_status st = json_fields_word(f, "scale", JSON_OPTIONAL, scale_words, &scale, err);
    if (st < 0)
        return st;
    p->scale = (param_scale)scale;
    st = json_fields_i64(f, "points", JSON_OPTIONAL, 2, PARAM_MAX_POINTS, &p->points, err);
    if (st < 0)
        return st;
    if (p->points && json_object_get(f->obj, "step") &&
        !json_is_null(json_object_get(f->obj, "step")))
        return json_fields_note(
            f, refuse_field(f, "points", err, AS_E_INVAL, "give either step or points, not both"),
            err);
    return AS_OK;
}

static as_status refuse_order(const struct json_fields *f, const char *min, const char *max,
                              struct as_err *err)
{
    char what[120];
    (void)snprintf(what, sizeof what, "min (%s) is above max (%s)", min, max);
    return refuse_field(f, "min", err, AS_E_INVAL, what);
}

static as_status check_float_step(const struct json_fields *f, const struct space_param *p,
                                  struct as_err *err)
{
    double min = p->real.min, max = p->real.max, step = p->real.step;
    char what[160], buf[32], range[32];
    const char *text = as_format_double(step, buf, sizeof buf);
    if (!(step > 0)) {
        (void)snprintf(what, sizeof what, "found %s, expected a number above 0", text);
        return refuse_field(f, "step", err, AS_E_INVAL, what);
    }
    if (step > max - min) {
        (void)snprintf(what, sizeof what, "%s is larger than the range from min to max (%s)", text,
                       as_format_double(max - min, range, sizeof range));
        return refuse_field(f, "step", err, AS_E_INVAL, what);
    }
    double largest = fmax(fabs(min), fabs(max));
    double ulp = nextafter(largest, INFINITY) - largest;
    if (step < 4 * ulp || (max - min) / step > (double)PARAM_EXACT_LEVELS) {
        (void)snprintf(what, sizeof what, "%s is too fine: leave it out for a continuous range",
                       text);
        return refuse_field(f, "step", err, AS_E_INVAL, what);
    }
    return AS_OK;
}

static as_status check_float(const struct json_fields *f, struct space_param *p, struct as_err *err)
{
    if (p->real.min > p->real.max) {
        char min[32], max[32];
        return refuse_order(f, as_format_double(p->real.min, min, sizeof min),
                            as_format_double(p->real.max, max, sizeof max), err);
    }
    if (p->scale == SCALE_LOG && p->real.min <= 0)
        return refuse_field(f, "min", err, AS_E_INVAL, "a log scale needs min above 0");
    /* min + 0.0 turns -0.0 into 0.0, so that equal values have equal bits */
    p->real.min += 0.0;
    p->real.max += 0.0;
    if (isnan(p->real.step)) {
        p->real.step = 0;
        return AS_OK;
    }
    return check_float_step(f, p, err);
}

static as_status parse_float(struct json_fields *f, struct space_param *p, struct as_err *err)
{
    const double any = 1e300; /* the width of the range must be a finite double too */
    p->real.step = NAN;
    as_status st = json_fields_double(f, "min", JSON_REQUIRED, -any, any, &p->real.min, err);
    if (st < 0)
        return st;
    st = json_fields_double(f, "max", JSON_REQUIRED, -any, any, &p->real.max, err);
    if (st < 0)
        return st;
    st = parse_scale_points(f, p, err);
    if (st < 0)
        return st;
    st = json_fields_double(f, "step", JSON_OPTIONAL, -any, any, &p->real.step, err);
    if (st < 0 || f->is_faulty)
        return st;
    return check_float(f, p, err);
}

static as_status check_int(const struct json_fields *f, struct space_param *p, int64_t step,
                           struct as_err *err)
{
    int64_t min = p->integer.min, max = p->integer.max, range;
    if (min > max) {
        char a[24], b[24];
        (void)snprintf(a, sizeof a, "%" PRId64, min);
        (void)snprintf(b, sizeof b, "%" PRId64, max);
        return refuse_order(f, a, b, err);
    }
    if (__builtin_sub_overflow(max, min, &range))
        return refuse_field(f, "max", err, AS_E_INVAL,
                            "the range from min to max is wider than 2^63");
    if (p->scale == SCALE_LOG && min <= 0)
        return refuse_field(f, "min", err, AS_E_INVAL, "a log scale needs min above 0");
    if (step < 1)
        return refuse_field(f, "step", err, AS_E_INVAL, "expected a whole number above 0");
    if (step > range && step > 1)
        return refuse_field(f, "step", err, AS_E_INVAL,
                            "it is larger than the range from min to max");
    p->integer.step = (uint64_t)step;
    return AS_OK;
}

static as_status parse_int(struct json_fields *f, struct space_param *p, struct as_err *err)
{
    int64_t step = 1;
    as_status st = take_integer(f, "min", JSON_REQUIRED, &p->integer.min, err);
    if (st < 0)
        return st;
    st = take_integer(f, "max", JSON_REQUIRED, &p->integer.max, err);
    if (st < 0)
        return st;
    st = parse_scale_points(f, p, err);
    if (st < 0)
        return st;
    st = take_integer(f, "step", JSON_OPTIONAL, &step, err);
    if (st < 0 || f->is_faulty)
        return st;
    return check_int(f, p, step, err);
}

/* Is it a list of strings, numbers, booleans, null and such lists? *items counts all of them. */
static bool is_plain_list(const json_t *j, int depth, size_t *items)
{
    if (depth > PARAM_LIST_DEPTH || (*items += json_array_size(j)) > PARAM_LIST_ITEMS)
        return false;
    for (size_t i = 0; i < json_array_size(j); i++) {
        const json_t *item = json_array_get(j, i);
        if (json_is_object(item) || (json_is_array(item) && !is_plain_list(item, depth + 1, items)))
            return false;
    }
    return true;
}

static as_status check_choice(const struct space_param *p, const json_t *j, const char *pointer,
                              struct as_err *err)
{
    size_t items = 0;
    bool is_text = json_is_string(j) || json_is_number(j);
    switch (p->kind) {
    case PARAM_ORDINAL:
        return is_text ? AS_OK : wrong_value(j, pointer, "a string or a number", err);
    case PARAM_CATEGORICAL:
    case PARAM_CONSTANT:
        if (json_is_object(j))
            return wrong_value(j, pointer, "a string, a number, a boolean, null or a list of these",
                               err);
        if (json_is_array(j) && !is_plain_list(j, 1, &items))
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "%s: expected a list of at most %d strings, numbers, booleans, null "
                              "and lists, %d lists deep",
                              pointer, PARAM_LIST_ITEMS, PARAM_LIST_DEPTH);
        return AS_OK;
    default:
        return is_text || json_is_boolean(j)
                   ? AS_OK
                   : wrong_value(j, pointer, "a string, a number or a boolean", err);
    }
}

/* Append one value, which must not be in the list yet. */
static as_status add_choice(struct space_param *p, json_t *j, const char *pointer,
                            struct as_err *err)
{
    as_status st = check_choice(p, j, pointer, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < p->n_values; i++) {
        if (same_value(json_array_get(p->values, i), j)) {
            AS_AUTO(as_freep) char *text = json_format(j);
            return as_fail_at(err, AS_E_INVAL, pointer, "%s: the value %.80s is there twice",
                              pointer, text ? text : "");
        }
    }
    /* a copy, so that the space does not depend on the caller's tree */
    if (json_array_append_new(p->values, json_clone(j)) < 0)
        return as_fail(err, AS_E_NOMEM, "out of memory for a parameter's values");
    p->n_values++;
    return AS_OK;
}

static as_status parse_values(struct json_fields *f, struct space_param *p, struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "values", JSON_REQUIRED, &list, err);
    if (st < 0 || !list)
        return st;
    char at[AS_ERR_POINTER_MAX], item[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, "values", at);
    if (json_array_size(list) == 0)
        return as_fail_at(err, AS_E_INVAL, at, "%s: the list is empty, expected at least one value",
                          at);
    if (json_array_size(list) > PARAM_MAX_VALUES)
        return as_fail_at(err, AS_E_TOO_LARGE, at, "%s: %zu values, at most %d are allowed", at,
                          json_array_size(list), PARAM_MAX_VALUES);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_pointer_index(at, i, item);
        st = json_fields_note(f, add_choice(p, json_array_get(list, i), item, err), err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status parse_choices(struct json_fields *f, struct space_param *p, struct as_err *err)
{
    p->values = json_array();
    if (!p->values)
        return as_fail(err, AS_E_NOMEM, "out of memory for a parameter's values");
    if (p->kind == PARAM_CATEGORICAL || p->kind == PARAM_ORDINAL)
        return parse_values(f, p, err);
    if (p->kind == PARAM_BOOL) {
        as_status st = add_choice(p, json_false(), f->pointer, err);
        return st < 0 ? st : add_choice(p, json_true(), f->pointer, err);
    }
    json_t *value = NULL;
    bool is_null = json_is_null(json_object_get(f->obj, "value")); /* which any() reads as absent */
    as_status st =
        json_fields_any(f, "value", is_null ? JSON_OPTIONAL : JSON_REQUIRED, &value, err);
    if (is_null)
        value = json_null();
    if (st < 0 || !value)
        return st;
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, "value", at);
    return add_choice(p, value, at, err);
}

static as_status parse_domain(struct json_fields *f, struct space_param *p, struct as_err *err)
{
    switch (p->kind) {
    case PARAM_FLOAT:
        return parse_float(f, p, err);
    case PARAM_INT:
        return parse_int(f, p, err);
    default:
        return parse_choices(f, p, err);
    }
}

as_status param_parse(const char *name, const json_t *j, const char *pointer, struct faults *faults,
                      struct space_param *ret, const json_t **ret_when, struct as_err *err)
{
    AS_AUTO(param_done) struct space_param p = {0};
    struct json_fields f;
    json_t *when = NULL;
    int kind = 0;
    as_status st = json_fields_init(&f, j, pointer, err);
    if (st < 0)
        return st;
    st = json_fields_word(&f, "type", JSON_REQUIRED, kind_words, &kind, err);
    if (st < 0)
        return st; /* which other fields there are depends on it: no list of faults */
    f.faults = faults;
    st = json_fields_any(&f, "when", JSON_OPTIONAL, &when, err);
    if (st < 0)
        return st;
    p.kind = (param_kind)kind;
    p.name = as_strdup(name);
    if (!p.name)
        return as_fail(err, AS_E_NOMEM, "out of memory for a parameter");
    st = json_fields_note(&f, parse_domain(&f, &p, err), err);
    if (st < 0)
        return st;
    if (!f.is_faulty && (st = param_prior_parse(&f, &p, err)) < 0)
        return st;
    st = json_fields_end(&f, err);
    if (st < 0)
        return st;
    *ret = p;
    p = (struct space_param){0};
    *ret_when = when;
    return AS_OK;
}

json_t *param_to_json(const struct space_param *p)
{
    JSON_AUTO j = json_object();
    int bad = json_object_set_new(j, "type", json_string(kind_words[p->kind]));
    if (p->kind == PARAM_FLOAT) {
        bad |= json_object_set_new(j, "min", json_real(p->real.min));
        bad |= json_object_set_new(j, "max", json_real(p->real.max));
        if (p->real.step > 0)
            bad |= json_object_set_new(j, "step", json_real(p->real.step));
    } else if (p->kind == PARAM_INT) {
        bad |= json_object_set_new(j, "min", json_integer(p->integer.min));
        bad |= json_object_set_new(j, "max", json_integer(p->integer.max));
        if (!p->points)
            bad |= json_object_set_new(j, "step", json_integer((json_int_t)p->integer.step));
    } else if (p->kind == PARAM_CATEGORICAL || p->kind == PARAM_ORDINAL) {
        bad |= json_object_set_new(j, "values", json_clone(p->values));
    } else if (p->kind == PARAM_CONSTANT) {
        bad |= json_object_set_new(j, "value", json_clone(json_array_get(p->values, 0)));
    }
    if (!param_is_choice(p)) {
        bad |= json_object_set_new(j, "scale", json_string(scale_words[p->scale]));
        if (p->points)
            bad |= json_object_set_new(j, "points", json_integer(p->points));
    }
    if (p->prior)
        bad |= json_object_set_new(j, "prior", param_prior_to_json(p));
    return bad ? NULL : as_steal(j);
}
