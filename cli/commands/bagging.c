/* Bagging is a sweep like any other: a grid over the number of the bootstrap sample, in one group. So
 * its trials are claimed, checkpointed, retried and shown as others are, and its ensemble is measured as
 * others are. Members of a mean of all are not selected, so that figure has no bias of selection. */
#include "cli/commands/bagging.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

#define PARAMETER "resample"
#define SUFFIX "-bagging"
#define NAME_MAX_LEN 63 /* of a sweep */

/* A parameter that is not active in the best trial is null: its field has the default. */
static json_t *fixed(const json_t *value)
{
    return value ? json_pack("{s:s, s:O}", "type", "constant", "value", value)
                 : json_pack("{s:s, s:[n]}", "type", "categorical", "values");
}

static const char *parameter_name(const json_t *spaces)
{
    return json_object_get(spaces, PARAMETER) ? PARAMETER "_of_bagging" : PARAMETER;
}

static json_t *fixed_parameters(const json_t *spaces, const json_t *params, size_t samples)
{
    JSON_AUTO ret = json_object();
    const char *name;
    json_t *space;
    json_object_foreach((json_t *)spaces, name, space)
    {
        const json_t *value = json_object_get(params, name);
        if (json_is_array(value)) { /* a constant is no list */
            if (json_object_set_new(
                    ret, name, json_pack("{s:s, s:[O]}", "type", "categorical", "values", value)) !=
                0)
                return NULL;
        } else if (json_object_set_new(ret, name, fixed(value)) != 0) {
            return NULL;
        }
    }
    json_t *numbers =
        json_pack("{s:s, s:i, s:I}", "type", "int", "min", 1, "max", (json_int_t)samples);
    if (json_object_set_new(ret, parameter_name(spaces), numbers) != 0)
        return NULL;
    return as_steal(ret);
}

static as_status check_sweep(const json_t *sweep, struct as_err *err)
{
    const char *id = json_string_value(json_object_get(sweep, "id"));
    const json_t *trial = json_object_get(json_object_get(sweep, "document"), "trial");
    if (!json_is_object(json_object_get(trial, "train")))
        return as_fail(err, AS_E_INVAL,
                       "the sweep '%.80s' does not use the built-in trainer (trial.train), which "
                       "draws the samples of bagging",
                       id ? id : "?");
    if (!json_is_object(json_object_get(json_object_get(sweep, "best"), "params")))
        return as_fail(err, AS_E_INVAL, "the sweep '%.80s' has no best trial", id ? id : "?");
    return AS_OK;
}

static json_t *name_of(const json_t *doc)
{
    char name[NAME_MAX_LEN + 1];
    const char *base = json_string_value(json_object_get(doc, "name"));
    (void)snprintf(name, sizeof name, "%.*s" SUFFIX, (int)(NAME_MAX_LEN - strlen(SUFFIX)),
                   base ? base : "sweep");
    return json_string(name);
}

static json_t *description_of(const json_t *sweep, size_t samples)
{
    return json_sprintf(
        "The configuration of %s/%lld, on %zu bootstrap samples",
        json_string_value(json_object_get(sweep, "id")),
        (long long)json_integer_value(json_object_get(json_object_get(sweep, "best"), "number")),
        samples);
}

/* Trials of several ranks do not share a process. */
static int set_resources(json_t *doc, size_t samples)
{
    json_t *resources = json_object_get(doc, "resources");
    json_int_t ranks = json_integer_value(json_object_get(resources, "ranks"));
    if (ranks > 1 || samples == 1)
        return 0;
    if (!json_is_object(resources))
        return json_object_set_new(doc, "resources",
                                   json_pack("{s:I}", "group", (json_int_t)samples));
    return json_object_set_new(resources, "group", json_integer((json_int_t)samples));
}

as_status bagging_document(const json_t *sweep, size_t samples, json_t **ret, struct as_err *err)
{
    static const char *const dropped[] = {"parameter_constraints", "forbidden"};
    static const char *const of_search[] = {"max_trials", "wall_time", "target",
                                            "max_failed_trials", "max_concurrent_trials"};
    as_status st = check_sweep(sweep, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO doc = json_deep_copy(json_object_get(sweep, "document"));
    const json_t *spaces = json_object_get(doc, "parameters");
    json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    const json_t *params = json_object_get(json_object_get(sweep, "best"), "params");
    int bad = doc == NULL;
    bad |= json_object_set_new(train, "resample", json_sprintf("${%s}", parameter_name(spaces)));
    bad |= json_object_set_new(doc, "parameters", fixed_parameters(spaces, params, samples));
    for (size_t i = 0; i < AS_ARRAY_LEN(dropped); i++)
        (void)json_object_del(doc, dropped[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(of_search); i++)
        (void)json_object_del(json_object_get(doc, "limits"), of_search[i]);
    bad |= json_object_set_new(doc, "name", name_of(doc));
    bad |= json_object_set_new(doc, "description", description_of(sweep, samples));
    bad |= json_object_set_new(doc, "search", json_pack("{s:s}", "method", "grid"));
    bad |= json_object_set_new(
        doc, "ensemble", json_pack("{s:s, s:I}", "method", "average", "size", (json_int_t)samples));
    bad |= set_resources(doc, samples);
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(doc);
    return AS_OK;
}
