#include "bench/answer.h"

#include "base/json.h"
#include "base/mem.h"

as_status answer_read(FILE *from, const char *who, json_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *line = NULL;
    size_t cap = 0;
    ssize_t len = getline(&line, &cap, from);
    if (len <= 0)
        return as_fail(err, AS_E_IO, "%s's process ended", who);
    as_status st = json_parse(line, (size_t)len, ret, err);
    if (st < 0)
        return st;
    const char *said = json_string_value(json_object_get(*ret, "error"));
    if (said == NULL)
        return AS_OK;
    st = as_fail(err, AS_E_IO, "%s: %s", who, said);
    json_decref(*ret);
    *ret = NULL;
    return st;
}
