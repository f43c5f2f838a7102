/* The reason of a suggestion of gp as a sentence for people.
 *
 * It reads the stored JSON and not the state of a search, so that trials of older versions are
 * explained too: a field that is missing or unknown leaves its clause out. */
#include "search/gp/gp_words.h"

#include <inttypes.h>

#include "base/json.h"
#include "search/problem/explain.h"

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
        {"repeat", "the best trial once more, to see whether its value is luck"},
        {"nearby", "chosen near one of the few trials that have succeeded"},
        {"spread", "a point far from the trials there, to learn what the numbers do"},
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
    explain_number(json_object_get(p, "mean"), "", b);
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
        add_prediction(p, explain_text(json_array_get(metrics, i), "name"), b);
    }
}

static void add_incumbent(const json_t *incumbent, struct str *b)
{
    if (!json_is_object(incumbent))
        return;
    str_printf(b, "; the best so far was trial %" PRId64, explain_count(incumbent, "number"));
    explain_number(json_object_get(incumbent, "value"), " with ", b);
}

static void add_value(const json_t *v, struct str *b)
{
    AS_AUTO(as_freep) char *text = NULL;
    if (!json_is_string(v))
        text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    str_puts(b, json_is_string(v) ? json_string_value(v) : text ? text : "?");
}

/* The branch of the space that the suggestion was made in. */
static void add_branch(const json_t *branch, struct str *b)
{
    double optimistic;
    if (!json_is_object(branch))
        return;
    const char *name = explain_text(branch, "parameter");
    str_printf(b, ", inside %s = ", name ? name : "?");
    add_value(json_object_get(branch, "value"), b);
    if (json_number_get(json_object_get(branch, "optimistic"), &optimistic))
        str_printf(b, ", which may still reach %.4g", optimistic);
    if (json_is_true(json_object_get(branch, "crossing")))
        str_puts(b, ", all else as in the best trial");
    if (json_is_true(json_object_get(branch, "own_model")))
        str_puts(b, ", by a model of its trials alone");
}

/* The part of the space that the suggestion was made in. */
static void add_part(const json_t *reason, struct str *b)
{
    size_t i;
    const json_t *item, *part = json_object_get(reason, "part");
    const json_t *idle = json_object_get(reason, "idle");
    if (!json_is_object(part))
        return;
    const char *name = explain_text(part, "parameter");
    str_printf(b, ", where %s is from ", name ? name : "?");
    add_value(json_object_get(part, "from"), b);
    str_puts(b, " to ");
    add_value(json_object_get(part, "to"), b);
    json_array_foreach((json_t *)idle, i, item)
    {
        str_puts(b, i ? ", " : ", because outside of it no effect is seen of ");
        add_value(item, b);
    }
}

static void add_prior_sweeps(const json_t *list, struct str *b)
{
    size_t i;
    const json_t *item;
    double weight, mean;
    json_array_foreach(list, i, item)
    {
        const char *sweep = explain_text(item, "sweep");
        if (json_number_get(json_object_get(item, "weight"), &weight))
            str_printf(b, ", with the sweep %s at weight %.2g", sweep ? sweep : "?", weight);
        if (json_number_get(json_object_get(item, "mean"), &mean) && mean > 0)
            str_printf(b, " and %.2g of its predictions", mean);
    }
}

/* What was learned of the parameters. */
static void add_no_effect(const json_t *list, struct str *b)
{
    size_t i;
    json_t *item, *value;
    const char *choice;
    json_array_foreach((json_t *)list, i, item)
    {
        const char *name = explain_text(item, "parameter");
        json_object_foreach(json_object_get(item, "where"), choice, value)
        {
            str_printf(b, "; %s has no effect where %s is ", name ? name : "?", choice);
            add_value(value, b);
            str_printf(b, " (%" PRId64 " trials)", explain_count(item, "trials"));
        }
    }
}

/* On which scales numbers act. */
static void add_scales(const json_t *list, struct str *b)
{
    size_t i;
    json_t *item;
    double rate;
    json_array_foreach((json_t *)list, i, item)
    {
        const char *name = explain_text(item, "parameter");
        if (json_number_get(json_object_get(item, "rate"), &rate))
            str_printf(b, "; %s acts on a logarithmic scale from its %s end", name ? name : "?",
                       rate > 0 ? "lower" : "upper");
    }
}

/* Models that are not used, because their predictions did not hold. */
static void add_lost_turns(const json_t *calibration, struct str *b)
{
    const char *model;
    json_t *record;
    json_object_foreach((json_t *)calibration, model, record)
    {
        if (!json_is_integer(json_object_get(record, "until")))
            continue;
        int64_t of = explain_count(record, "of");
        str_printf(b,
                   "; the %s model has no turns before %" PRId64 " results, because %" PRId64
                   " of its %" PRId64 " predictions did not hold",
                   model, explain_count(record, "until"), of - explain_count(record, "within"), of);
    }
}

/* The numbers that could change. */
static void add_free(const json_t *list, struct str *b)
{
    size_t i;
    const json_t *item;
    json_array_foreach((json_t *)list, i, item)
    {
        const char *name = json_string_value(item);
        str_printf(b, "%s%s", i ? ", " : ", changing numbers among ", name ? name : "?");
    }
}

static void add_model(const json_t *reason, const json_t *metrics, struct str *b)
{
    const char *words = acquisition_words(explain_text(reason, "acquisition"));
    double side;
    str_puts(b, words ? words : "chosen by the model");
    add_predicted(json_object_get(reason, "predicted"), metrics, b);
    if (json_number_get(json_object_get(reason, "trust_region"), &side))
        str_printf(b, ", within a trust region of side %.3g", side);
    if (json_is_integer(json_object_get(reason, "basin")))
        str_printf(b, ", in the basin of trial %" PRId64 ", beside that of the best",
                   explain_count(reason, "basin"));
    add_branch(json_object_get(reason, "branch"), b);
    add_free(json_object_get(reason, "free"), b);
    add_part(reason, b);
    explain_prior(reason, b);
    add_prior_sweeps(json_object_get(reason, "prior_sweeps"), b);
    if (json_is_true(json_object_get(reason, "stagnant")))
        str_puts(b, "; recent trials improved almost nothing");
    add_no_effect(json_object_get(reason, "no_effect"), b);
    add_scales(json_object_get(reason, "scales"), b);
    add_lost_turns(json_object_get(reason, "calibration"), b);
}

void gp_explain(const struct search_method *m, const json_t *reason, const json_t *metrics,
                struct str *b)
{
    (void)m;
    if (as_streq(explain_text(reason, "phase"), "model"))
        add_model(reason, metrics, b);
    else
        explain_design(reason, b);
    add_incumbent(json_object_get(reason, "incumbent"), b);
    explain_seen(reason, b);
}
