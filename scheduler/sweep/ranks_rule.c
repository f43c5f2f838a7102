#include "scheduler/sweep/ranks_rule.h"

#include <inttypes.h>

#include "base/json.h"
#include "scheduler/sweep/sweep_doc.h"

#define AT "/resources/ranks"
#define NAME "ranks"

/* `scale` and `step` are those of any int, and are checked with the parameter. */
static as_status check(const json_t *range, const json_t *parameters, struct as_err *err)
{
    struct json_fields f;
    json_t *other = NULL;
    int64_t min = 0, max = 0;
    as_status st = json_fields_init(&f, range, AT, err);
    if (st < 0 ||
        (st = json_fields_i64(&f, "min", JSON_REQUIRED, 1, SWEEP_MAX_RANKS, &min, err)) < 0 ||
        (st = json_fields_i64(&f, "max", JSON_REQUIRED, 1, SWEEP_MAX_RANKS, &max, err)) < 0 ||
        (st = json_fields_any(&f, "scale", JSON_OPTIONAL, &other, err)) < 0 ||
        (st = json_fields_any(&f, "step", JSON_OPTIONAL, &other, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (min > max)
        return as_fail_at(err, AS_E_INVAL, AT,
                          AT ": found min %" PRId64 " above max %" PRId64 ", expected min <= max",
                          min, max);
    if (json_object_get(parameters, NAME))
        return as_fail_at(err, AS_E_INVAL, AT,
                          AT ": found a range, and a parameter '" NAME "': expected ${" NAME
                             "}, which is that parameter, or another name "
                             "for it");
    return AS_OK;
}

static json_t *parameter_of(const json_t *range)
{
    JSON_AUTO p = json_pack("{s:s}", "type", "int");
    return p && json_object_update(p, (json_t *)range) == 0 ? as_steal(p) : NULL;
}

as_status ranks_rule_apply(const json_t *doc, json_t **ret, struct as_err *err)
{
    const json_t *range = json_object_get(json_object_get(doc, "resources"), "ranks");
    if (!json_is_object(range)) {
        *ret = json_incref((json_t *)doc);
        return AS_OK;
    }
    as_status st = check(range, json_object_get(doc, "parameters"), err);
    if (st != AS_OK)
        return st;
    JSON_AUTO copy = json_clone(doc);
    json_t *parameters = json_object_get(copy, "parameters");
    if (copy && !parameters) {
        parameters = json_object();
        (void)json_object_set_new(copy, "parameters", parameters);
    }
    if (!copy || json_object_set_new(parameters, NAME, parameter_of(range)) != 0 ||
        json_object_set_new(json_object_get(copy, "resources"), "ranks",
                            json_string("${" NAME "}")) != 0)
        return as_fail_nomem(err);
    *ret = as_steal(copy);
    return AS_OK;
}
