#include "scheduler/store/values_priv.h"

#include <math.h>
#include <stdlib.h>

as_status array_of_names(struct str *b, const char *const *names, size_t n, struct as_err *err)
{
    array_open(b);
    for (size_t i = 0; i < n; i++)
        array_str(b, names[i]);
    array_close(b);
    return str_check(b, err);
}

/* Step over what stands before element i, and over the element itself if it is NULL. false: the
 * text has another form. */
static bool next_element(const char **s, size_t i, bool *ret_null)
{
    if (**s != (i == 0 ? '{' : ','))
        return false;
    (*s)++;
    *ret_null = as_starts_with(*s, "NULL");
    if (*ret_null)
        *s += 4;
    return true;
}

static as_status fail_list(struct as_err *err)
{
    return as_fail(err, AS_E_INTERNAL, "a list of values that cannot be read");
}

/* Elements are numbers as PostgreSQL prints a float8 (which reads back exactly), NaN, Infinity, or
 * NULL. */
as_status read_values(struct reader *rd, size_t n, double *ret, bool *ret_has, struct as_err *err)
{
    bool is_null = read_null(rd), is_missing = true;
    const char *s = read_view(rd);
    for (size_t i = 0; i < n; i++) {
        char *end = NULL;
        ret[i] = NAN;
        if (!is_null && !next_element(&s, i, &is_missing))
            return fail_list(err);
        if (ret_has)
            ret_has[i] = !is_missing;
        if (is_missing)
            continue;
        ret[i] = strtod(s, &end);
        if (end == s)
            return fail_list(err);
        s = end;
    }
    return !is_null && n > 0 && *s != '}' ? fail_list(err) : AS_OK;
}

as_status read_integers(struct reader *rd, size_t n, int64_t *ret, bool *ret_has,
                        struct as_err *err)
{
    const char *s = read_view(rd);
    for (size_t i = 0; i < n; i++) {
        char *end = NULL;
        bool is_missing = false;
        if (!next_element(&s, i, &is_missing))
            return fail_list(err);
        ret_has[i] = !is_missing;
        ret[i] = 0;
        if (is_missing)
            continue;
        ret[i] = strtoll(s, &end, 10);
        if (end == s)
            return fail_list(err);
        s = end;
    }
    return n > 0 && *s != '}' ? fail_list(err) : AS_OK;
}
