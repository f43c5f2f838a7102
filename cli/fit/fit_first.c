/* Each kind has a configuration that is good on most tables: defaults of studies of tuning
 * (fit_sweep.c) and of the libraries themselves, clamped to the ranges. What other sweeps have
 * found stands before them. It is made from the trial of the same kind, so that it has what the
 * plan needs and nothing that it lacks. */
#include "cli/fit/fit_first.h"

#include <math.h>

#include "base/json.h"

static json_t *boosted_new(const struct fit_plan *p, double rate, double leaves, double rows,
                           double columns, double weight)
{
    return json_pack("{s:s, s:I, s:f, s:I, s:f, s:f, s:f}", "kind", "boosted_trees", "rounds",
                     (json_int_t)p->rounds, "rate", fit_range_clamp(&p->ranges[FIT_RATE], rate),
                     "leaves", (json_int_t)fit_range_clamp(&p->ranges[FIT_LEAVES], leaves), "rows",
                     rows, "columns", fit_range_clamp(&p->ranges[FIT_COLUMNS], columns),
                     "leaf_weight", weight);
}

static json_t *forest_new(const struct fit_plan *p, const char *kind, double per_split,
                          double weight)
{
    JSON_AUTO j =
        json_pack("{s:s, s:f, s:f}", "kind", kind, "per_split",
                  fit_range_clamp(&p->ranges[FIT_PER_SPLIT], per_split), "leaf_weight", weight);
    if (j && p->refit && json_object_set_new(j, "refit", json_true()) != 0)
        return NULL;
    if (j && as_streq(kind, "random_forest") &&
        json_object_set_new(j, "trees", json_integer((json_int_t)p->forest_trees)) != 0)
        return NULL;
    return as_steal(j);
}

/* A kind that is trained by gradients. */
static json_t *descent_new(const struct fit_plan *p, const char *kind, double lr, bool in_bins)
{
    JSON_AUTO j = json_pack("{s:s, s:f}", "kind", kind, "lr", lr);
    const char *numbers = in_bins ? "piecewise_linear" : "none";
    if (j && p->bins && json_object_set_new(j, "numbers", json_string(numbers)) != 0)
        return NULL;
    return as_steal(j);
}

static json_t *network_new(const struct fit_plan *p, size_t embedding)
{
    JSON_AUTO j = descent_new(p, "mlp", 0.003, false);
    if (!j || json_object_set_new(j, "width", json_integer(128)) != 0 ||
        json_object_set_new(j, "dropout", json_real(0.1)) != 0)
        return NULL;
    if (p->embedding &&
        json_object_set_new(j, "embedding", json_integer((json_int_t)embedding)) != 0)
        return NULL;
    return as_steal(j);
}

static json_t *neighbours_new(const struct fit_plan *p)
{
    size_t n = p->most_neighbours < 15 ? p->most_neighbours : 15;
    JSON_AUTO j = json_pack("{s:s, s:I, s:s}", "kind", "knn", "neighbours", (json_int_t)n,
                            "nearness", "distance");
    if (!j || (p->bins && json_object_set_new(j, "numbers", json_string("none")) != 0) ||
        (p->refit && json_object_set_new(j, "refit", json_true()) != 0))
        return NULL;
    return as_steal(j);
}

static json_t *bayes_new(const struct fit_plan *p)
{
    JSON_AUTO j = json_pack("{s:s, s:f, s:f}", "kind", "naive_bayes", "smoothing",
                            p->words ? 0.1 : 1.0, "spread", 0.01);
    if (j && p->words && json_object_set_new(j, "words", json_string("complement")) != 0)
        return NULL;
    return as_steal(j);
}

/* Add a trial with these parameters; takes them. A skewed target is transformed in every trial but
 * the second and each second one after it: of boosted trees, of which there are three, in one. */
static int add_trial(const struct fit_plan *p, json_t *list, json_t *params)
{
    JSON_AUTO owned = params;
    target_transform transform = json_array_size(list) % 2 ? TARGET_AS_IS : p->transform;
    if (!owned || (p->class_weights && json_object_set_new(owned, "weights", json_null()) != 0))
        return -1;
    if (p->transform != TARGET_AS_IS &&
        json_object_set_new(owned, "transform", json_string(target_transform_names[transform])) !=
            0)
        return -1;
    return json_array_append_new(list, json_pack("{s:O}", "params", owned));
}

json_t *fit_first_trials(const struct fit_plan *p, const struct fit_facts *f)
{
    JSON_AUTO list = json_array();
    double split = sqrt((double)f->columns) / (double)f->columns;
    int bad = !list;
    bad |= add_trial(p, list, descent_new(p, f->classes ? "logistic" : "linear", 0.01, true));
    bad |= add_trial(p, list, boosted_new(p, 0.2, 16, 0.8, 0.8, 3));
    if (p->forest)
        bad |= add_trial(p, list, forest_new(p, "random_forest", split, p->least_weight));
    if (p->extra)
        bad |= add_trial(
            p, list, forest_new(p, "extra_trees", f->classes ? split : 1, p->least_extra_weight));
    if (p->network)
        bad |= add_trial(p, list, network_new(p, p->one_hot ? 0 : p->embedding));
    if (p->neighbours)
        bad |= add_trial(p, list, neighbours_new(p));
    if (p->bayes)
        bad |= add_trial(p, list, bayes_new(p));
    bad |= add_trial(p, list, boosted_new(p, 0.06, 31, 0.8, 0.6, 3));
    bad |= add_trial(p, list, boosted_new(p, 0.04, 8, 0.7, 0.5, 1));
    if (p->network && p->embedding && p->one_hot)
        bad |= add_trial(p, list, network_new(p, p->embedding));
    return bad ? NULL : as_steal(list);
}

/* ---- what other sweeps have found ---- */

/* The value as the parameter can have it, or NULL. `move`: into the range. */
static json_t *value_within(const json_t *space, const json_t *value, bool move)
{
    const char *type = json_string_value(json_object_get(space, "type"));
    const json_t *min = json_object_get(space, "min"), *max = json_object_get(space, "max");
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(space, "values"), i,
                       one) if (json_equal(one, value)) return json_incref(one);
    if (!min || !max || !json_is_number(value))
        return NULL;
    const struct fit_range range = {.min = json_number_value(min), .max = json_number_value(max)};
    double own = json_number_value(value), v = fit_range_clamp(&range, own);
    if (!move && v != own)
        return NULL;
    return as_streq(type, "int") ? json_integer((json_int_t)llround(v)) : json_real(v);
}

/* What keeps a forest within the size of the model. */
static double least_weight_of(const struct fit_plan *p, const char *kind)
{
    if (as_streq(kind, "random_forest"))
        return p->least_weight;
    return as_streq(kind, "extra_trees") ? p->least_extra_weight : 0;
}

/* The first trial of a kind; NULL: the plan has no such kind. */
static json_t *trial_of(const json_t *trials, const json_t *kind)
{
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)trials, i, trial)
    {
        if (json_equal(json_object_get(json_object_get(trial, "params"), "kind"), kind))
            return trial;
    }
    return NULL;
}

/* The first trial of the same kind with the values of a configuration, or NULL. `move`: what the
 * space excludes is moved into it, or left out; else there is no such trial. */
static json_t *trial_with(const struct fit_plan *p, const json_t *trials, const json_t *spaces,
                          const json_t *params, bool move)
{
    const json_t *kind = json_object_get(params, "kind");
    json_t *trial = trial_of(trials, kind), *value;
    const char *name;
    JSON_AUTO made = trial ? json_deep_copy(trial) : NULL;
    json_t *to = json_object_get(made, "params");
    double least = least_weight_of(p, json_string_value(kind));
    json_object_foreach(to ? (json_t *)params : NULL, name, value)
    {
        const json_t *space = json_object_get(to, name) ? json_object_get(spaces, name) : NULL;
        JSON_AUTO own = value_within(space, value, move);
        if (as_streq(name, "leaf_weight") && json_number_value(own) < least)
            json_decref(as_steal(own));
        if (!own && !move)
            return NULL;
        if (own && json_object_set(to, name, own) != 0)
            return NULL;
    }
    return as_steal(made);
}

static bool has_equal(const json_t *trials, const json_t *trial)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)trials, i, one) if (json_equal(one, trial)) return true;
    return false;
}

/* No trial runs twice. */
static void drop_equal(json_t *trials, const json_t *others)
{
    for (size_t i = json_array_size(trials); i-- > 0;)
        if (has_equal(others, json_array_get(trials, i)))
            (void)json_array_remove(trials, i);
}

/* "NAME=VALUE …" */
static void say_params(const json_t *params, struct str *b)
{
    const char *name, *between = "";
    json_t *value;
    json_object_foreach((json_t *)params, name, value)
    {
        str_printf(b, "%s%s=", between, name);
        between = " ";
        if (json_is_string(value))
            str_puts(b, json_string_value(value));
        else
            str_printf(b, "%.4g", json_number_value(value));
    }
    str_putc(b, '\n');
}

int fit_first_trials_found(const struct fit_plan *p, const json_t *spaces,
                           const struct fit_found *found, json_t *trials, struct str *says)
{
    JSON_AUTO list = json_array();
    size_t i;
    json_t *one;
    int bad = !list;
    json_array_foreach((json_t *)found->warm, i, one)
    {
        JSON_AUTO trial = trial_with(p, trials, spaces, one, true);
        if (trial && !has_equal(list, trial))
            bad |= json_array_append(list, trial);
    }
    json_array_foreach((json_t *)found->defaults, i, one)
    {
        JSON_AUTO trial = trial_with(p, trials, spaces, one, false);
        if (!trial || has_equal(list, trial) || json_array_size(list) >= found->most)
            continue;
        bad |= json_array_append(list, trial);
        say_params(one, says);
    }
    drop_equal(trials, list);
    json_array_foreach(list, i, one) bad |= json_array_insert(trials, i, one);
    return bad ? -1 : 0;
}

void fit_first_trials_limit(const struct fit_plan *p, json_t *trials)
{
    while (json_array_size(trials) > p->max_trials)
        (void)json_array_remove(trials, json_array_size(trials) - 1);
}
