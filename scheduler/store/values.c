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

/* Elements are numbers as PostgreSQL prints a float8 (which reads back exactly), NaN, Infinity, or
 * NULL. */
as_status read_values(struct reader *rd, size_t n, double *ret, bool *ret_has, struct as_err *err)
{
    bool is_null = read_null(rd);
    const char *s = read_view(rd);
    for (size_t i = 0; i < n; i++) {
        char *end = NULL;
        ret[i] = NAN;
        if (ret_has)
            ret_has[i] = false;
        if (is_null)
            continue;
        if (*s != (i == 0 ? '{' : ','))
            return as_fail(err, AS_E_INTERNAL, "a list of values that cannot be read");
        s++;
        if (as_starts_with(s, "NULL")) {
            s += 4;
            continue;
        }
        ret[i] = strtod(s, &end);
        if (end == s)
            return as_fail(err, AS_E_INTERNAL, "a list of values that cannot be read");
        if (ret_has)
            ret_has[i] = true;
        s = end;
    }
    if (!is_null && n > 0 && *s != '}')
        return as_fail(err, AS_E_INTERNAL, "a list of values that cannot be read");
    return AS_OK;
}
