#include "scheduler/sweep/buckets_rule.h"

#include "base/json.h"
#include "base/str.h"

#define AT "/ensemble/by"

static as_status check(const json_t *ensemble, const json_t *train, struct as_err *err)
{
    const char *by = json_string_value(json_object_get(ensemble, "by"));
    const char *method = json_string_value(json_object_get(ensemble, "method"));
    const json_t *buckets = json_object_get(train, "buckets");
    if (!by)
        return as_fail_at(err, AS_E_INVAL, AT, AT ": expected the name of a column");
    if (!as_streq(method, "bucketing"))
        return as_fail_at(err, AS_E_INVAL, AT, AT ": found with method %.40s, expected bucketing",
                          method ? method : "greedy");
    if (!json_is_object(train))
        return as_fail_at(err, AS_E_INVAL, AT,
                          AT
                          ": found without trial.train, expected a trial of the built-in trainer; "
                          "a program leaves buckets.json");
    if (buckets && !as_streq(json_string_value(buckets), by))
        return as_fail_at(err, AS_E_INVAL, AT,
                          AT ": found '%.60s', expected the column of /trial/train/buckets", by);
    return AS_OK;
}

as_status buckets_rule_apply(const json_t *doc, json_t **ret, struct as_err *err)
{
    const json_t *ensemble = json_object_get(doc, "ensemble");
    const json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    if (!json_object_get(ensemble, "by")) {
        *ret = json_incref((json_t *)doc);
        return AS_OK;
    }
    as_status st = check(ensemble, train, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO copy = json_clone(doc);
    json_t *own = json_object_get(copy, "ensemble");
    json_t *to = json_object_get(json_object_get(copy, "trial"), "train");
    if (!copy || json_object_set(to, "buckets", json_object_get(own, "by")) != 0 ||
        json_object_del(own, "by") != 0)
        return as_fail_nomem(err);
    *ret = as_steal(copy);
    return AS_OK;
}
