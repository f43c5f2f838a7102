/* The fields of a suggestion's reason (docs/search.md) as sentences, one function for each method.
 * A field that is missing adds nothing, so reasons of older releases give fewer words. */
#include "cli/view/reason.h"

#include "base/json.h"
#include "cli/view/format.h"

static const char *text_of(const json_t *j, const char *field)
{
    return json_string_value(json_object_get(j, field));
}

static json_int_t count_of(const json_t *j, const char *field)
{
    return json_integer_value(json_object_get(j, field));
}

/* The acquisition functions of gp in words. */
static const char *acquisition_words(const char *name)
{
    static const struct {
        const char *name, *words;
    } all[] = {
        {"ucb", "chosen by upper confidence bound"},
        {"logei", "chosen by expected improvement"},
        {"quadratic", "chosen as the minimum of a quadratic through the best trials"},
        {"pe", "chosen to explore: where the model is least certain among promising points"},
        {"ehvi", "chosen by expected hypervolume improvement"},
        {"feasibility", "chosen to keep the constraints: no trial has kept them yet"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        if (as_streq(all[i].name, name))
            return all[i].words;
    return NULL;
}

static void add_prediction(const json_t *p, const char *name, struct str *b)
{
    if (name)
        str_printf(b, "%s ", name);
    format_value(b, json_object_get(p, "mean"), FORMAT_SHORT);
    str_puts(b, " ± ");
    double d;
    if (json_number_get(json_object_get(p, "deviation"), &d))
        str_printf(b, "%.2g", d);
}

/* `predicted` is one prediction, or a list in the order of the sweep's objectives. */
static void add_predicted(const json_t *predicted, const json_t *metrics, struct str *b)
{
    size_t i;
    json_t *p;
    if (json_is_object(predicted)) {
        str_puts(b, ": predicted ");
        add_prediction(predicted, NULL, b);
        return;
    }
    json_array_foreach((json_t *)predicted, i, p)
    {
        str_puts(b, i ? ", " : ": predicted ");
        add_prediction(p, text_of(json_array_get(metrics, i), "name"), b);
    }
}

static void add_incumbent(const json_t *incumbent, struct str *b)
{
    if (!json_is_object(incumbent))
        return;
    str_printf(b, "; the best so far was trial %" JSON_INTEGER_FORMAT " with ",
               count_of(incumbent, "number"));
    format_value(b, json_object_get(incumbent, "value"), FORMAT_SHORT);
}

static void add_seen(const json_t *s, struct str *b)
{
    json_int_t observed = count_of(s, "observed"), failed = count_of(s, "failed");
    json_int_t pending = count_of(s, "pending");
    str_printf(b, "; %" JSON_INTEGER_FORMAT " result%s seen", observed, observed == 1 ? "" : "s");
    if (failed > 0)
        str_printf(b, ", %" JSON_INTEGER_FORMAT " failed", failed);
    if (pending > 0)
        str_printf(b, ", %" JSON_INTEGER_FORMAT " pending", pending);
}

static void add_initial(const json_t *s, struct str *b)
{
    const char *fallback = text_of(s, "fallback");
    if (fallback)
        str_printf(b, "drawn to fill the space, because there is no model: %s", fallback);
    else
        str_printf(b, "point %" JSON_INTEGER_FORMAT " of the initial design, which fills the space",
                   count_of(s, "point"));
}

/* The branch of the space that the suggestion was made in. */
static void add_branch(const json_t *branch, struct str *b)
{
    double optimistic;
    AS_AUTO(as_freep) char *value = NULL;
    const json_t *v = json_object_get(branch, "value");
    if (!json_is_object(branch))
        return;
    if (!json_is_string(v))
        value = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    const char *name = text_of(branch, "parameter");
    str_printf(b, ", inside %s = %s", name ? name : "?",
               json_is_string(v) ? json_string_value(v)
               : value           ? value
                                 : "?");
    if (json_number_get(json_object_get(branch, "optimistic"), &optimistic))
        str_printf(b, ", which may still reach %.4g", optimistic);
    if (json_is_true(json_object_get(branch, "crossing")))
        str_puts(b, ", all else as in the best trial");
}

static void add_prior(const json_t *s, struct str *b)
{
    double weight;
    if (json_number_get(json_object_get(s, "prior"), &weight))
        str_printf(b, ", with the priors at weight %.2g", weight);
}

static void add_prior_sweeps(const json_t *list, struct str *b)
{
    size_t i;
    const json_t *item;
    double weight, mean;
    json_array_foreach(list, i, item)
    {
        const char *sweep = text_of(item, "sweep");
        if (json_number_get(json_object_get(item, "weight"), &weight))
            str_printf(b, ", with the sweep %s at weight %.2g", sweep ? sweep : "?", weight);
        if (json_number_get(json_object_get(item, "mean"), &mean) && mean > 0)
            str_printf(b, " and %.2g of its predictions", mean);
    }
}

static void add_gp(const json_t *s, const json_t *metrics, struct str *b)
{
    const char *words = acquisition_words(text_of(s, "acquisition"));
    double length;
    if (as_streq(text_of(s, "phase"), "model")) {
        str_puts(b, words ? words : "chosen by the model");
        add_predicted(json_object_get(s, "predicted"), metrics, b);
        if (json_number_get(json_object_get(s, "trust_region"), &length))
            str_printf(b, ", within a trust region of side %.3g", length);
        add_branch(json_object_get(s, "branch"), b);
        add_prior(s, b);
        add_prior_sweeps(json_object_get(s, "prior_sweeps"), b);
        if (json_is_true(json_object_get(s, "stagnant")))
            str_puts(b, "; recent trials improved almost nothing");
    } else {
        add_initial(s, b);
    }
    add_incumbent(json_object_get(s, "incumbent"), b);
    add_seen(s, b);
}

static void add_changed(const json_t *names, struct str *b)
{
    size_t i;
    const json_t *name;
    json_array_foreach(names, i, name) str_printf(
        b, "%s%s", i ? " and " : "", json_is_string(name) ? json_string_value(name) : "?");
    str_puts(b, " changed");
}

static void add_tpe(const json_t *s, struct str *b)
{
    str_printf(b, "like the %" JSON_INTEGER_FORMAT " best trials and unlike the others",
               count_of(s, "good"));
    add_prior(s, b);
}

static void add_evolution(const json_t *s, struct str *b)
{
    str_printf(b, "trial %" JSON_INTEGER_FORMAT " with ", count_of(s, "parent"));
    add_changed(json_object_get(s, "changed"), b);
}

static void add_cmaes(const json_t *s, struct str *b)
{
    double step;
    str_printf(b, "drawn after %" JSON_INTEGER_FORMAT " generations", count_of(s, "generation"));
    if (json_number_get(json_object_get(s, "step"), &step))
        str_printf(b, ", in steps of %.2g of the range", step);
    if (count_of(s, "restarts") > 0)
        str_printf(b, ", restarted %" JSON_INTEGER_FORMAT " times", count_of(s, "restarts"));
}

/* Methods that follow the order of the trials. */
static const struct {
    const char *method;
    void (*add)(const json_t *s, struct str *b);
} followers[] = {{"tpe", add_tpe}, {"evolution", add_evolution}, {"cmaes", add_cmaes}};

static bool add_follower(const char *method, const json_t *s, struct str *b)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(followers); i++) {
        if (!as_streq(method, followers[i].method))
            continue;
        if (as_streq(text_of(s, "phase"), "search"))
            followers[i].add(s, b);
        else
            add_initial(s, b);
        add_seen(s, b);
        return true;
    }
    return false;
}

void reason_words(const json_t *suggestion, const json_t *metrics, struct str *b)
{
    const char *method = text_of(suggestion, "method");
    if (!method)
        return;
    if (as_streq(method, "gp"))
        add_gp(suggestion, metrics, b);
    else if (as_streq(method, "grid"))
        str_printf(b, "cell %" JSON_INTEGER_FORMAT " of the grid's %" JSON_INTEGER_FORMAT,
                   count_of(suggestion, "cell"), count_of(suggestion, "cells"));
    else if (as_streq(method, "sobol"))
        str_printf(b, "point %" JSON_INTEGER_FORMAT " of a Sobol sequence, which fills the space",
                   count_of(suggestion, "point"));
    else if (as_streq(method, "random"))
        str_puts(b, "drawn at random");
    else if (as_streq(method, "enqueued"))
        str_puts(b, "enqueued by hand");
    else if (as_streq(method, "known"))
        str_puts(b, "a known result, added by hand");
    else if (!add_follower(method, suggestion, b))
        str_puts(b, method);
}
