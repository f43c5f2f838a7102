/* Follow-up sweeps are a table. What they have in common: the configuration of a trial becomes a
 * document without anything to search. A row says how many trainings of which kind follow, and its
 * function changes the document.
 *
 * They are sweeps like any other, so their trials are claimed, checkpointed, retried and shown as
 * others are, and their ensemble is measured as others are. */
#include "cli/commands/follow_up.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/template.h"

#define NAME_MAX_LEN 63 /* of a sweep */

/* Each parameter of the best trial as a constant. Those that are not active in it are left out. */
static json_t *fixed_parameters(const json_t *spaces, const json_t *params)
{
    JSON_AUTO ret = json_object();
    const char *name;
    json_t *space;
    json_object_foreach((json_t *)spaces, name, space)
    {
        json_t *value = json_object_get(params, name);
        JSON_AUTO fixed = json_is_array(value) /* a constant is no list */
                              ? json_pack("{s:s, s:[O]}", "type", "categorical", "values", value)
                              : json_pack("{s:s, s:O*}", "type", "constant", "value", value);
        if (!ret || !fixed || (value && json_object_set(ret, name, fixed) != 0))
            return NULL;
    }
    return as_steal(ret);
}

/* Does a text refer to a parameter that `params` lacks? */
static bool lacks_parameter(const json_t *text, const json_t *params)
{
    JSON_AUTO names = NULL;
    if (template_names(text, &names, NULL) != AS_OK)
        return false; /* the server refuses it, with its pointer */
    for (size_t i = 0; i < json_array_size(names); i++)
        if (!json_object_get(params, json_string_value(json_array_get(names, i))))
            return true;
    return false;
}

static as_status settle_inactive(json_t *tree, const json_t *params, struct as_err *err);

/* What takes the place of `item`, a part of a tree; NULL: it is left out. */
static as_status settle_item(json_t *item, const json_t *params, json_t **ret, struct as_err *err)
{
    JSON_AUTO value = NULL;
    *ret = item;
    if (!json_is_string(item))
        return settle_inactive(item, params, err);
    if (!lacks_parameter(item, params))
        return AS_OK;
    as_status st = template_apply(item, params, &value, err);
    if (st == AS_OK)
        *ret = json_is_null(value) ? NULL : as_steal(value);
    return st;
}

/* Give every text below `tree` that refers to a parameter which is not active in the best trial the
 * value that it has there, as a trial's document gets it: a field or an item without a value is
 * left out. */
static as_status settle_inactive(json_t *tree, const json_t *params, struct as_err *err)
{
    json_t *value = NULL, *item;
    const char *key;
    void *next;
    as_status st = AS_OK;
    json_object_foreach_safe(tree, next, key, item)
    {
        st = settle_item(item, params, &value, err);
        if (st != AS_OK)
            return st;
        if (!value)
            (void)json_object_del(tree, key);
        else if (value != item && json_object_set_new(tree, key, value) != 0)
            return as_fail_nomem(err);
    }
    for (size_t i = json_array_size(tree); i-- > 0;) {
        item = json_array_get(tree, i);
        st = settle_item(item, params, &value, err);
        if (st != AS_OK)
            return st;
        if (!value)
            (void)json_array_remove(tree, i);
        else if (value != item && json_array_set_new(tree, i, value) != 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
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

static json_t *name_of(const struct follow_up *f, const json_t *doc)
{
    char name[NAME_MAX_LEN + 1], suffix[32];
    (void)snprintf(suffix, sizeof suffix, "-%s", f->name);
    const char *base = json_string_value(json_object_get(doc, "name"));
    (void)snprintf(name, sizeof name, "%.*s%s", (int)(NAME_MAX_LEN - strlen(suffix)),
                   base ? base : "sweep", suffix);
    return json_string(name);
}

static json_t *description_of(const struct follow_up *f, const json_t *sweep, size_t n)
{
    return json_sprintf(
        "The configuration of %s/%lld, %s %zu %s", json_string_value(json_object_get(sweep, "id")),
        (long long)json_integer_value(json_object_get(json_object_get(sweep, "best"), "number")),
        f->how, n, f->unit);
}

/* A grid with the seed of the sweep, so that the same models come from the same sweep. */
static json_t *search_of(const json_t *doc)
{
    json_t *seed = json_object_get(json_object_get(doc, "search"), "seed");
    return json_pack("{s:s, s:O*}", "method", "grid", "seed", seed);
}

/* The document of `sweep` with its parameters fixed at the best trial's, a grid as search, the
 * limits of the search and the constraints gone. Its trial.train is an object. */
static as_status make_document(const struct follow_up *f, const json_t *sweep, size_t n,
                               json_t **ret, struct as_err *err)
{
    static const char *const dropped[] = {"parameter_constraints", "forbidden", "ensemble"};
    static const char *const of_search[] = {
        "max_trials", "wall_time",         "target",
        "stop_when",  "max_failed_trials", "max_concurrent_trials"};
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
    bad |= json_object_set_new(doc, "name", name_of(f, doc));
    bad |= json_object_set_new(doc, "description", description_of(f, sweep, n));
    bad |= json_object_set_new(doc, "search", search_of(doc));
    if (bad)
        return as_fail_nomem(err);
    st = settle_inactive(json_object_get(json_object_get(doc, "trial"), "train"), params, err);
    if (st == AS_OK)
        *ret = as_steal(doc);
    return st;
}

/* The value of a field of trial.train in the best trial: a template is looked up among the trial's
 * parameters. A view of sweep; NULL when there is none. */
static const json_t *value_of(const json_t *sweep, const json_t *field)
{
    char name[256];
    const char *text = json_string_value(field);
    size_t len = text ? strlen(text) : 0;
    if (len < 4 || len >= sizeof name || strncmp(text, "${", 2) != 0 || text[len - 1] != '}')
        return field;
    (void)snprintf(name, sizeof name, "%.*s", (int)(len - 3), text + 2);
    return json_object_get(json_object_get(json_object_get(sweep, "best"), "params"), name);
}

/* Let the document search over a whole number, which `holder`, a part of it, has as `field`. The
 * parameter has the field's name, or `other` if the sweep has one of that name. Not 0: memory is
 * out. */
static int search_over(json_t *doc, json_t *holder, const char *field, const char *other,
                       size_t min, size_t max)
{
    json_t *spaces = json_object_get(doc, "parameters");
    const char *name = json_object_get(spaces, field) ? other : field;
    int bad = json_object_set_new(holder, field, json_sprintf("${%s}", name));
    bad |= json_object_set_new(spaces, name,
                               json_pack("{s:s, s:I, s:I}", "type", "int", "min", (json_int_t)min,
                                         "max", (json_int_t)max));
    return bad;
}

/* ---- bagging ---- */

/* Trials of several ranks do not share a process. */
static int set_group(json_t *doc, size_t samples)
{
    json_t *resources = json_object_get(doc, "resources");
    const json_t *ranks = json_object_get(resources, "ranks"); /* a number, or a parameter */
    if (json_is_string(ranks) || json_integer_value(ranks) > 1 || samples == 1)
        return 0;
    if (!json_is_object(resources))
        return json_object_set_new(doc, "resources",
                                   json_pack("{s:I}", "group", (json_int_t)samples));
    return json_object_set_new(resources, "group", json_integer((json_int_t)samples));
}

/* A grid over the number of the bootstrap sample, in one group. Members of a mean of all are not
 * selected, so its figure has no bias of selection. L. Breiman, "Bagging predictors", Machine
 * Learning 24, 1996. */
static as_status bag(const json_t *sweep, json_t *doc, json_t *train, size_t n, struct as_err *err)
{
    (void)sweep;
    int bad = search_over(doc, train, "resample", "resample_of_bagging", 1, n);
    bad |= json_object_set_new(doc, "ensemble",
                               json_pack("{s:s, s:I}", "method", "average", "size", (json_int_t)n));
    bad |= set_group(doc, n);
    return bad ? as_fail_nomem(err) : AS_OK;
}

/* ---- snapshots ---- */

static as_status check_network(const json_t *sweep, const json_t *train, struct as_err *err)
{
    const json_t *kind = json_object_get(json_object_get(train, "model"), "kind");
    const char *found = json_string_value(value_of(sweep, kind));
    if (as_streq(found, "boosted_trees") || as_streq(found, "random_forest") ||
        as_streq(found, "extra_trees") || as_streq(found, "knn") || as_streq(found, "naive_bayes"))
        return as_fail(err, AS_E_INVAL,
                       "the best trial of '%.80s' is of %s, which have no learning rate with "
                       "cycles; snapshots are of networks",
                       json_string_value(json_object_get(sweep, "id")), found);
    return AS_OK;
}

/* As many cycles of the cosine schedule, all of which end in a snapshot. */
static as_status take_snapshots(const json_t *sweep, json_t *doc, json_t *train, size_t n,
                                struct as_err *err)
{
    (void)doc;
    as_status st = check_network(sweep, train, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO own = json_pack("{s:s, s:I, s:I}", "kind", "cosine", "cycles", (json_int_t)n,
                              "snapshots", (json_int_t)n);
    json_t *schedule = json_object_get(train, "schedule");
    (void)json_object_del(train, "patience"); /* it would end the training within a cycle */
    int bad = json_is_object(schedule) ? json_object_update(schedule, own)
                                       : json_object_set(train, "schedule", own);
    return !own || bad ? as_fail_nomem(err) : AS_OK;
}

/* ---- boosting ---- */

/* Stages, one trial after another; the ensemble is the number of stages that is best by
 * cross-validation. */
static as_status boost(const json_t *sweep, json_t *doc, json_t *train, size_t n,
                       struct as_err *err)
{
    json_t *stages = json_object();
    json_t *limits = json_object_get(doc, "limits");
    (void)sweep;
    int bad = json_object_set_new(train, "boost", stages);
    bad |= search_over(doc, stages, "stage", "stage_of_boosting", 0, n - 1);
    (void)json_object_del(train, "buckets"); /* one number of stages for all rows */
    if (!limits)
        bad |= json_object_set_new(doc, "limits", limits = json_object());
    /* a stage needs the one before */
    bad |= json_object_set_new(limits, "max_concurrent_trials", json_integer(1));
    bad |= json_object_set_new(limits, "max_failed_trials", json_integer(1));
    bad |= json_object_set_new(doc, "ensemble", json_pack("{s:s}", "method", "bucketing"));
    (void)json_object_del(json_object_get(doc, "resources"), "group");
    return bad ? as_fail_nomem(err) : AS_OK;
}

/* ---- the table ---- */

static const struct follow_up follow_ups[] = {
    {"bagging", "on", "bootstrap samples", 64, 16, bag},
    {"snapshot", "with", "snapshots", 64, 5, take_snapshots},
    {"boosting", "in", "stages of boosting", 256, 8, boost},
};

const struct follow_up *follow_up_find(const char *method)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(follow_ups); i++)
        if (as_streq(follow_ups[i].name, method))
            return &follow_ups[i];
    return NULL;
}

as_status follow_up_document(const struct follow_up *f, const json_t *sweep, size_t n, json_t **ret,
                             struct as_err *err)
{
    JSON_AUTO doc = NULL;
    as_status st = make_document(f, sweep, n, &doc, err);
    if (st != AS_OK)
        return st;
    json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    st = f->change(sweep, doc, train, n, err);
    if (st == AS_OK)
        *ret = as_steal(doc);
    return st;
}
