#include "cli/view/objectives.h"

#include "base/json.h"
#include "cli/view/format.h"

size_t objectives_count(const json_t *sweep)
{
    size_t n = json_array_size(json_object_get(sweep, "metrics"));
    return n > 0 ? n : 1;
}

const json_t *objectives_at(const json_t *sweep, size_t i)
{
    const json_t *metrics = json_object_get(sweep, "metrics");
    if (json_array_size(metrics) > 0)
        return json_array_get(metrics, i);
    return i == 0 ? json_object_get(sweep, "metric") : NULL;
}

bool objectives_has_constraints(const json_t *sweep)
{
    return json_array_size(json_object_get(sweep, "constraints")) > 0;
}

bool objectives_maximizes(const json_t *objective)
{
    return as_streq(json_string_value(json_object_get(objective, "goal")), "maximize");
}

static bool add_name(json_t *names, const char *name)
{
    size_t i;
    json_t *seen;
    json_array_foreach(names, i, seen)
    {
        if (as_streq(json_string_value(seen), name))
            return true;
    }
    return json_array_append_new(names, json_string(name)) == 0;
}

json_t *objectives_names(const json_t *sweep)
{
    JSON_AUTO names = json_array();
    size_t i;
    json_t *item;
    for (i = 0; names && i < objectives_count(sweep); i++) {
        const char *name = json_string_value(json_object_get(objectives_at(sweep, i), "name"));
        if (!add_name(names, name ? name : "value"))
            return NULL;
    }
    json_array_foreach(json_object_get(sweep, "constraints"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, "metric"));
        if (name && !add_name(names, name))
            return NULL;
    }
    return as_steal(names);
}

void objectives_words(const json_t *sweep, struct str *b)
{
    for (size_t i = 0; i < objectives_count(sweep); i++) {
        const json_t *o = objectives_at(sweep, i);
        const char *name = json_string_value(json_object_get(o, "name"));
        const char *goal = json_string_value(json_object_get(o, "goal"));
        str_printf(b, "%s%s (%s)", i ? ", " : "", name ? name : "?", goal ? goal : "?");
    }
}

void objectives_bounds(const json_t *constraint, struct str *b)
{
    const char *name = json_string_value(json_object_get(constraint, "metric"));
    const json_t *min = json_object_get(constraint, "min");
    const json_t *max = json_object_get(constraint, "max");
    bool both = json_is_number(min) && json_is_number(max);
    if (both) {
        format_value(b, min, FORMAT_EXACT);
        str_puts(b, " <= ");
    }
    str_puts(b, name ? name : "?");
    if (json_is_number(max)) {
        str_puts(b, " <= ");
        format_value(b, max, FORMAT_EXACT);
    } else if (json_is_number(min)) {
        str_puts(b, " >= ");
        format_value(b, min, FORMAT_EXACT);
    }
}
