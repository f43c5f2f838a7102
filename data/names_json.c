#include "data/names_json.h"

#include "base/json.h"

json_t *names_json_new(char *const *names, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_string(names[i])) != 0)
            return NULL;
    return as_steal(list);
}

as_status names_json_read(const json_t *list, const char *pointer, char ***ret, size_t *ret_n,
                          struct as_err *err)
{
    size_t n = json_array_size(list);
    *ret = as_calloc(n, sizeof **ret);
    if (!*ret)
        return as_fail_nomem(err);
    for (; *ret_n < n; (*ret_n)++) {
        const json_t *j = json_array_get(list, *ret_n);
        if (!json_is_string(j))
            return as_fail_at(err, AS_E_INVAL, pointer, "%s/%zu: found %s, expected a string",
                              pointer, *ret_n, json_type_name(j));
        (*ret)[*ret_n] = as_strdup(json_string_value(j));
        if (!(*ret)[*ret_n])
            return as_fail_nomem(err);
    }
    return AS_OK;
}
