/* What follow-up sweeps have in common: the configuration of a trial becomes a document without
 * anything to search. */
#include "cli/commands/follow_up.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#define NAME_MAX_LEN 63 /* of a sweep */

/* A parameter that is not active in the best trial is null: its field has the default. */
static json_t *fixed(const json_t *value)
{
    return value ? json_pack("{s:s, s:O}", "type", "constant", "value", value)
                 : json_pack("{s:s, s:[n]}", "type", "categorical", "values");
}

static json_t *fixed_parameters(const json_t *spaces, const json_t *params)
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
    return as_steal(ret);
}

static as_status check_sweep(const json_t *sweep, struct as_err *err)
{
    const char *id = json_string_value(json_object_get(sweep, "id"));
    const json_t *trial = json_object_get(json_object_get(sweep, "document"), "trial");
    if (!json_is_object(json_object_get(trial, "train")))
        return as_fail(err, AS_E_INVAL,
                       "the sweep '%.80s' does not use the built-in trainer (trial.train)",
                       id ? id : "?");
    if (!json_is_object(json_object_get(json_object_get(sweep, "best"), "params")))
        return as_fail(err, AS_E_INVAL, "the sweep '%.80s' has no best trial", id ? id : "?");
    return AS_OK;
}

static json_t *name_of(const json_t *doc, const char *suffix)
{
    char name[NAME_MAX_LEN + 1];
    const char *base = json_string_value(json_object_get(doc, "name"));
    (void)snprintf(name, sizeof name, "%.*s%s", (int)(NAME_MAX_LEN - strlen(suffix)),
                   base ? base : "sweep", suffix);
    return json_string(name);
}

static json_t *description_of(const json_t *sweep, const char *what)
{
    return json_sprintf(
        "The configuration of %s/%lld, %s", json_string_value(json_object_get(sweep, "id")),
        (long long)json_integer_value(json_object_get(json_object_get(sweep, "best"), "number")),
        what);
}

as_status follow_up_document(const json_t *sweep, const char *suffix, const char *what,
                             json_t **ret, struct as_err *err)
{
    static const char *const dropped[] = {"parameter_constraints", "forbidden", "ensemble"};
    static const char *const of_search[] = {"max_trials", "wall_time", "target",
                                            "max_failed_trials", "max_concurrent_trials"};
    as_status st = check_sweep(sweep, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO doc = json_deep_copy(json_object_get(sweep, "document"));
    const json_t *params = json_object_get(json_object_get(sweep, "best"), "params");
    const json_t *spaces = json_object_get(doc, "parameters");
    int bad = doc == NULL;
    bad |= json_object_set_new(doc, "parameters", fixed_parameters(spaces, params));
    for (size_t i = 0; i < AS_ARRAY_LEN(dropped); i++)
        (void)json_object_del(doc, dropped[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(of_search); i++)
        (void)json_object_del(json_object_get(doc, "limits"), of_search[i]);
    bad |= json_object_set_new(doc, "name", name_of(doc, suffix));
    bad |= json_object_set_new(doc, "description", description_of(sweep, what));
    bad |= json_object_set_new(doc, "search", json_pack("{s:s}", "method", "grid"));
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(doc);
    return AS_OK;
}

const json_t *follow_up_value(const json_t *sweep, const json_t *field)
{
    char name[256];
    const char *text = json_string_value(field);
    size_t len = text ? strlen(text) : 0;
    if (len < 4 || len >= sizeof name || strncmp(text, "${", 2) != 0 || text[len - 1] != '}')
        return field;
    (void)snprintf(name, sizeof name, "%.*s", (int)(len - 3), text + 2);
    return json_object_get(json_object_get(json_object_get(sweep, "best"), "params"), name);
}

int follow_up_search(json_t *doc, json_t *holder, const char *field, const char *other, size_t min,
                     size_t max)
{
    json_t *spaces = json_object_get(doc, "parameters");
    const char *name = json_object_get(spaces, field) ? other : field;
    int bad = json_object_set_new(holder, field, json_sprintf("${%s}", name));
    bad |= json_object_set_new(spaces, name,
                               json_pack("{s:s, s:I, s:I}", "type", "int", "min", (json_int_t)min,
                                         "max", (json_int_t)max));
    return bad;
}

/* ---- snapshots ---- */

static as_status check_network(const json_t *sweep, const json_t *train, struct as_err *err)
{
    const json_t *kind = json_object_get(json_object_get(train, "model"), "kind");
    const char *found = json_string_value(follow_up_value(sweep, kind));
    if (as_streq(found, "boosted_trees") || as_streq(found, "random_forest"))
        return as_fail(err, AS_E_INVAL,
                       "the best trial of '%.80s' is of %s, which have no learning rate with "
                       "cycles; snapshots are of networks",
                       json_string_value(json_object_get(sweep, "id")), found);
    return AS_OK;
}

as_status follow_up_snapshots(const json_t *sweep, size_t snapshots, json_t **ret,
                              struct as_err *err)
{
    char what[64];
    JSON_AUTO doc = NULL;
    (void)snprintf(what, sizeof what, "with %zu snapshots", snapshots);
    as_status st = follow_up_document(sweep, "-snapshot", what, &doc, err);
    if (st != AS_OK)
        return st;
    json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    st = check_network(sweep, train, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO own = json_pack("{s:s, s:I, s:I}", "kind", "cosine", "cycles", (json_int_t)snapshots,
                              "snapshots", (json_int_t)snapshots);
    json_t *schedule = json_object_get(train, "schedule");
    (void)json_object_del(train, "patience"); /* it would end the training within a cycle */
    int bad = json_is_object(schedule) ? json_object_update(schedule, own)
                                       : json_object_set(train, "schedule", own);
    if (!own || bad)
        return as_fail_nomem(err);
    *ret = as_steal(doc);
    return AS_OK;
}

/* ---- boosting ---- */

as_status follow_up_boosting(const json_t *sweep, size_t stages, json_t **ret, struct as_err *err)
{
    char what[64];
    JSON_AUTO doc = NULL;
    (void)snprintf(what, sizeof what, "in %zu stages of boosting", stages);
    as_status st = follow_up_document(sweep, "-boosting", what, &doc, err);
    if (st != AS_OK)
        return st;
    json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    json_t *boost = json_object();
    json_t *limits = json_object_get(doc, "limits");
    int bad = json_object_set_new(train, "boost", boost);
    bad |= follow_up_search(doc, boost, "stage", "stage_of_boosting", 0, stages - 1);
    (void)json_object_del(train, "buckets"); /* one number of stages for all rows */
    if (!limits)
        bad |= json_object_set_new(doc, "limits", limits = json_object());
    /* a stage needs the one before */
    bad |= json_object_set_new(limits, "max_concurrent_trials", json_integer(1));
    bad |= json_object_set_new(limits, "max_failed_trials", json_integer(1));
    bad |= json_object_set_new(doc, "ensemble", json_pack("{s:s}", "method", "bucketing"));
    (void)json_object_del(json_object_get(doc, "resources"), "group");
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(doc);
    return AS_OK;
}
