/* Fields of JSON objects.
 *
 * struct json_fields remembers each name that a getter asks for. json_fields_end() can then refuse
 * every other name and propose the nearest one, without a second list of the names. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "base/utf8.h"

as_status json_fields_init(struct json_fields *f, const json_t *obj, const char *pointer,
                           struct as_err *err)
{
    *f = (struct json_fields){.obj = obj};
    (void)snprintf(f->pointer, sizeof f->pointer, "%s", pointer);
    if (!json_is_object(obj))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %s, expected an object",
                          *pointer ? pointer : "the document", json_type_name(obj));
    return AS_OK;
}

as_status json_fields_under(struct json_fields *f, const struct json_fields *parent,
                            const json_t *obj, const char *pointer, struct as_err *err)
{
    as_status st = json_fields_init(f, obj, pointer, err);
    f->faults = parent->faults;
    return st;
}

bool json_fields_lack(const struct json_fields *f, const char *name)
{
    const json_t *j = json_object_get(f->obj, name);
    return !j || json_is_null(j);
}

as_status json_fields_note(struct json_fields *f, as_status st, struct as_err *err)
{
    if (st == AS_OK)
        return AS_OK;
    as_status noted = faults_note(f->faults, st, err);
    if (noted == AS_OK && !f->is_faulty) {
        f->is_faulty = true;
        f->first = faults_find(f->faults, err->pointer);
    }
    return noted;
}

/* *ret is the field or NULL; its name counts as known from now on. AS_E_INVAL if it is required and
 * absent. */
static as_status take_field(struct json_fields *f, const char *name, json_need need, json_t **ret,
                            struct as_err *err)
{
    if (f->n_seen < AS_ARRAY_LEN(f->seen))
        f->seen[f->n_seen++] = name;
    json_t *j = json_object_get(f->obj, name);
    *ret = json_is_null(j) ? NULL : j;
    if (!*ret && need == JSON_REQUIRED) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f->pointer, name, at);
        return json_fields_note(f, as_fail_at(err, AS_E_INVAL, at, "%s is missing", at), err);
    }
    return AS_OK;
}

static as_status fail_field(struct json_fields *f, const char *name, const json_t *found,
                            const char *expected, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, name, at);
    AS_AUTO(as_freep)
    char *text = json_is_object(found) || json_is_array(found) ? NULL : json_format(found);
    as_status st = as_fail_at(err, AS_E_INVAL, at, "%s: found %.80s, expected %s", at,
                              text ? text : json_type_name(found), expected);
    return json_fields_note(f, st, err);
}

as_status json_fields_any(struct json_fields *f, const char *name, json_need need, json_t **ret,
                          struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st != AS_OK)
        return st;
    if (j)
        *ret = j;
    return AS_OK;
}

as_status json_fields_str(struct json_fields *f, const char *name, json_need need, const char **ret,
                          struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_string(j))
        return fail_field(f, name, j, "a string", err);
    *ret = json_string_value(j);
    return AS_OK;
}

as_status json_fields_text(struct json_fields *f, const char *name, json_need need, size_t min,
                           size_t max, const char **ret, struct as_err *err)
{
    const char *s = NULL;
    as_status st = json_fields_str(f, name, need, &s, err);
    if (st < 0 || !s)
        return st;
    size_t n = as_utf8_length(s);
    if (n < min || n > max) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f->pointer, name, at);
        st = as_fail_at(err, AS_E_INVAL, at, "%s: found %zu characters, expected %zu to %zu", at, n,
                        min, max);
        return json_fields_note(f, st, err);
    }
    *ret = s;
    return AS_OK;
}

as_status json_fields_i64(struct json_fields *f, const char *name, json_need need, int64_t min,
                          int64_t max, int64_t *ret, struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_integer(j) || json_integer_value(j) < min || json_integer_value(j) > max) {
        char expected[96];
        (void)snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64,
                       min, max);
        return fail_field(f, name, j, expected, err);
    }
    *ret = json_integer_value(j);
    return AS_OK;
}

as_status json_fields_double(struct json_fields *f, const char *name, json_need need, double min,
                             double max, double *ret, struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    double v = json_is_number(j) ? json_number_value(j) : NAN;
    if (!(v >= min && v <= max)) {
        char expected[96], low[32], high[32];
        (void)snprintf(expected, sizeof expected, "a number from %s to %s",
                       as_format_double(min, low, sizeof low),
                       as_format_double(max, high, sizeof high));
        return fail_field(f, name, j, expected, err);
    }
    *ret = v;
    return AS_OK;
}

as_status json_fields_bool(struct json_fields *f, const char *name, json_need need, bool *ret,
                           struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_boolean(j))
        return fail_field(f, name, j, "true or false", err);
    *ret = json_is_true(j);
    return AS_OK;
}

as_status json_fields_object(struct json_fields *f, const char *name, json_need need, json_t **ret,
                             struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_object(j))
        return fail_field(f, name, j, "an object", err);
    *ret = j;
    return AS_OK;
}

as_status json_fields_array(struct json_fields *f, const char *name, json_need need, json_t **ret,
                            struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_array(j))
        return fail_field(f, name, j, "a list", err);
    *ret = j;
    return AS_OK;
}

as_status json_fields_word(struct json_fields *f, const char *name, json_need need,
                           const char *const *words, int *ret, struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    const char *s = json_string_value(j);
    AS_AUTO(str_done) struct str expected = {0};
    str_puts(&expected, "one of");
    for (int i = 0; words[i]; i++) {
        if (as_streq(s, words[i])) {
            *ret = i;
            return AS_OK;
        }
        str_printf(&expected, "%s %s", i ? "," : "", words[i]);
    }
    return fail_field(f, name, j, str_cstr(&expected), err);
}

as_status json_fields_duration(struct json_fields *f, const char *name, json_need need,
                               int64_t *ret_ms, struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    double v = json_number_value(j);
    if (json_is_number(j) && v > 0 && v < 1e12) {
        *ret_ms = (int64_t)llround(v * 1000.0);
        return AS_OK;
    }
    int64_t ms = 0;
    if (!json_is_string(j) || as_parse_duration_ms(json_string_value(j), &ms, NULL) < 0 || ms <= 0)
        return fail_field(f, name, j, "a duration such as 30s, 5m, 4h, or seconds above 0", err);
    *ret_ms = ms;
    return AS_OK;
}

/* Is `key` a field that a getter asked for? */
static bool is_known(const struct json_fields *f, const char *key)
{
    for (size_t i = 0; i < f->n_seen; i++)
        if (as_streq(key, f->seen[i]))
            return true;
    return false;
}

/* The name that was asked for and is most like `key`; NULL: none is. */
static const char *nearest_name(const struct json_fields *f, const char *key)
{
    struct as_nearest near = {.given = key};
    for (size_t i = 0; i < f->n_seen; i++)
        as_nearest_offer(&near, f->seen[i]);
    return near.name;
}

static as_status refuse_unknown(const struct json_fields *f, const char *key, const char *nearest,
                                struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, key, at);
    if (nearest)
        return as_fail_at(err, AS_E_INVAL, at, "%s is not a known field; did you mean '%s'?", at,
                          nearest);
    AS_AUTO(str_done) struct str known = {0};
    for (size_t i = 0; i < f->n_seen; i++) {
        size_t k = 0; /* a field that two getters asked for stands there once */
        while (!as_streq(f->seen[k], f->seen[i]))
            k++;
        if (k == i)
            str_printf(&known, "%s%s", i ? ", " : "", f->seen[i]);
    }
    return as_fail_at(err, AS_E_INVAL, at, "%s is not a known field; expected one of: %s", at,
                      str_cstr(&known));
}

as_status json_fields_end(struct json_fields *f, struct as_err *err)
{
    for (void *it = json_object_iter((json_t *)f->obj); it;
         it = json_object_iter_next((json_t *)f->obj, it)) {
        const char *key = json_object_iter_key(it);
        if (is_known(f, key))
            continue;
        as_status st = json_fields_note(f, refuse_unknown(f, key, nearest_name(f, key), err), err);
        if (st != AS_OK)
            return st;
    }
    if (!f->is_faulty)
        return AS_OK;
    const struct as_err *first = &f->faults->list[f->first];
    if (err)
        *err = *first;
    return first->code;
}
