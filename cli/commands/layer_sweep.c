/* Which models of a layer are worth having is known from the layer before it: those whose
 * combination was best. The same configurations are trained again (as in N. Erickson and others,
 * "AutoGluon-Tabular", 2020), so a layer needs no search of its own. */
#include "cli/commands/layer_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

#define NAME_MAX_LEN 63 /* of a sweep */
#define SUFFIX "-layer"

/* One trial? Members of an ensemble of several sweeps name theirs. */
static bool is_same(const json_t *a, const json_t *b)
{
    return json_equal(json_object_get(a, "number"), json_object_get(b, "number")) &&
           as_streq(json_string_value(json_object_get(a, "sweep")),
                    json_string_value(json_object_get(b, "sweep")));
}

static bool has_trial(const json_t *list, const json_t *member)
{
    size_t i;
    const json_t *other;
    json_array_foreach(list, i, other) if (is_same(other, member)) return true;
    return false;
}

/* The heaviest member that is not in the list; NULL: there is none. */
static json_t *next_of(const json_t *ensemble, const json_t *list)
{
    json_t *member, *best = NULL;
    size_t i;
    json_array_foreach(json_object_get(ensemble, "members"), i, member)
    {
        double weight = json_number_value(json_object_get(member, "weight"));
        if (!has_trial(list, member) &&
            (!best || weight > json_number_value(json_object_get(best, "weight"))))
            best = member;
    }
    return best;
}

as_status layer_choose(const json_t *chosen, const json_t *best, size_t n, json_t **ret,
                       struct as_err *err)
{
    JSON_AUTO list = json_array();
    while (list && json_array_size(list) < n) {
        json_t *member = next_of(chosen, list);
        if (!member)
            member = next_of(best, list);
        if (!member)
            break;
        if (json_array_append(list, member) != 0)
            return as_fail_nomem(err);
    }
    *ret = as_steal(list);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status check_sweep(const json_t *sweep, const json_t *trials, struct as_err *err)
{
    const char *id = json_string_value(json_object_get(sweep, "id"));
    const json_t *trial = json_object_get(json_object_get(sweep, "document"), "trial");
    const json_t *train = json_object_get(trial, "train");
    if (!json_is_object(train))
        return as_fail(err, AS_E_INVAL,
                       "the sweep '%.80s' does not use the built-in trainer (trial.train)",
                       id ? id : "?");
    if (!json_object_get(json_object_get(train, "validation"), "folds"))
        return as_fail(err, AS_E_INVAL,
                       "the trials of '%.80s' hold out a part of the rows: a further layer sees "
                       "predictions of all rows by models that were trained without them, which "
                       "trial.train.validation.folds gives",
                       id ? id : "?");
    if (json_array_size(trials) == 0)
        return as_fail(err, AS_E_INVAL, "the sweep '%.80s' has no ensemble to build on",
                       id ? id : "?");
    return AS_OK;
}

/* The name of a sweep's first layer, whose length is *ret_len, and the number of its own. */
static size_t layer_of(const json_t *doc, const char **ret_name, size_t *ret_len)
{
    const json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    const char *name = json_string_value(json_object_get(doc, "name")), *last = NULL;
    size_t layer = 0;
    name = name ? name : "sweep";
    *ret_name = name;
    *ret_len = strlen(name);
    for (const char *at = name; (at = strstr(at, SUFFIX)); at++)
        last = at;
    if (!last || last == name || !json_object_get(train, "stack"))
        return 1;
    for (const char *c = last + strlen(SUFFIX); *c >= '0' && *c <= '9' && layer < 1000; c++)
        layer = layer * 10 + (size_t)(*c - '0');
    if (layer < 2)
        return 1;
    *ret_len = (size_t)(last - name);
    return layer;
}

static json_t *name_of(const json_t *doc)
{
    char name[NAME_MAX_LEN + 1], suffix[32];
    const char *base;
    size_t len;
    (void)snprintf(suffix, sizeof suffix, SUFFIX "%zu", layer_of(doc, &base, &len) + 1);
    size_t most = NAME_MAX_LEN - strlen(suffix);
    (void)snprintf(name, sizeof name, "%.*s%s", (int)(len < most ? len : most), base, suffix);
    return json_string(name);
}

/* SWEEP/NUMBER of each: of its own sweep, or of this one. */
static json_t *names_of(const json_t *sweep, const json_t *trials)
{
    JSON_AUTO list = json_array();
    const char *id = json_string_value(json_object_get(sweep, "id"));
    size_t i;
    const json_t *t;
    json_array_foreach(trials, i, t)
    {
        json_int_t number = json_integer_value(json_object_get(t, "number"));
        const char *of = json_string_value(json_object_get(t, "sweep"));
        json_t *text = json_sprintf("%s/%lld", of ? of : id ? id : "?", (long long)number);
        if (json_array_append_new(list, text) != 0)
            return NULL;
    }
    return as_steal(list);
}

/* Only the limits of one trial stay. */
static int set_limits(json_t *doc, size_t n, int64_t time_ms)
{
    static const char *const of_search[] = {"wall_time", "target", "stop_when", "max_trials",
                                            "max_failed_trials"};
    json_t *limits = json_object_get(doc, "limits");
    int bad = limits ? 0 : json_object_set_new(doc, "limits", limits = json_object());
    for (size_t i = 0; i < AS_ARRAY_LEN(of_search); i++)
        (void)json_object_del(limits, of_search[i]);
    bad |= json_object_set_new(limits, "max_trials", json_integer((json_int_t)n));
    if (time_ms > 0)
        bad |= json_object_set_new(limits, "wall_time", json_sprintf("%lldms", (long long)time_ms));
    return bad;
}

as_status layer_document(const json_t *sweep, const json_t *trials, int64_t time_ms, json_t **ret,
                         struct as_err *err)
{
    static const char *const dropped[] = {"early_stopping", "ensemble"};
    as_status st = check_sweep(sweep, trials, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO doc = json_deep_copy(json_object_get(sweep, "document"));
    json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    json_t *seed = json_object_get(json_object_get(doc, "search"), "seed");
    JSON_AUTO search = json_pack("{s:s, s:O*}", "method", "random", "seed", seed);
    size_t n = json_array_size(trials);
    int bad = !doc || !search;
    for (size_t i = 0; i < AS_ARRAY_LEN(dropped); i++)
        (void)json_object_del(doc, dropped[i]);
    bad |= json_object_set_new(doc, "name", name_of(doc));
    bad |= json_object_set_new(
        doc, "description",
        json_sprintf("%zu configurations of %s, which see what these trials predicted", n,
                     json_string_value(json_object_get(sweep, "id"))));
    bad |= json_object_set(doc, "search", search);
    bad |= set_limits(doc, n, time_ms);
    bad |= json_object_set_new(train, "stack", names_of(sweep, trials));
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(doc);
    return AS_OK;
}

json_t *layer_first_trials(const json_t *trials)
{
    JSON_AUTO list = json_array();
    size_t i;
    const json_t *t;
    json_array_foreach(
        trials, i, t) if (json_array_append_new(list, json_pack("{s:O}", "params",
                                                                json_object_get(t, "params"))) !=
                          0) return NULL;
    return as_steal(list);
}
