#include "trial-runner/attempt/attempt_id.h"

#include <string.h>

#include "base/mem.h"

bool attempt_id_same(const struct attempt_id *a, const struct attempt_id *b)
{
    return a->number == b->number && a->attempt == b->attempt && a->seat == b->seat &&
           strcmp(a->sweep, b->sweep) == 0;
}

json_t *attempt_id_json(const struct attempt_id *id)
{
    json_t *j = json_pack("{s:s,s:I,s:I}", "sweep", id->sweep, "number", (json_int_t)id->number,
                          "attempt", (json_int_t)id->attempt);
    if (id->seat == ATTEMPT_NO_SEAT ||
        json_object_set_new(j, "seat", json_integer((json_int_t)id->seat)) == 0)
        return j;
    json_decref(j);
    return NULL;
}

struct attempt_id attempt_id_of(const json_t *j)
{
    const char *sweep = json_string_value(json_object_get(j, "sweep"));
    const json_t *seat = json_object_get(j, "seat");
    return (struct attempt_id){.sweep = sweep ? sweep : "",
                               .number = json_integer_value(json_object_get(j, "number")),
                               .attempt = json_integer_value(json_object_get(j, "attempt")),
                               .seat = json_is_integer(seat) ? json_integer_value(seat)
                                                             : ATTEMPT_NO_SEAT};
}

void attempt_id_folder(const struct attempt_id *id, struct str *path)
{
    str_printf(path, "%s/%lld/%lld", id->sweep, (long long)id->number, (long long)id->attempt);
    if (id->seat != ATTEMPT_NO_SEAT)
        str_printf(path, ".%lld", (long long)id->seat);
}

bool attempt_id_read_folder(const char *name, struct attempt_id *ret)
{
    AS_AUTO(as_freep) char *copy = as_strdup(name);
    char *dot = copy ? strchr(copy, '.') : NULL;
    ret->seat = ATTEMPT_NO_SEAT;
    if (dot) {
        *dot = '\0';
        if (as_parse_i64(dot + 1, &ret->seat, NULL) < 0 || ret->seat < 0)
            return false;
    }
    return copy && as_parse_i64(copy, &ret->attempt, NULL) == AS_OK && ret->attempt >= 1;
}

void attempt_id_url(const struct attempt_id *id, struct str *path)
{
    str_printf(path, "/v1/sweeps/%s/trials/%lld/attempts/%lld", id->sweep, (long long)id->number,
               (long long)id->attempt);
}

void attempt_id_label(const struct attempt_id *id, struct str *label)
{
    str_printf(label, "trial=%.80s/%lld attempt=%lld", id->sweep, (long long)id->number,
               (long long)id->attempt);
    if (id->seat != ATTEMPT_NO_SEAT)
        str_printf(label, " seat=%lld", (long long)id->seat);
}
