#include "cli/fit/fit_ranges.h"

#include <math.h>
#include <stdbool.h>

#include "base/json.h"

#define END 0.05 /* of a range, that counts as its end */

/* `factor`: how much further an end is moved; of a range without logarithms, by how much. */
static const struct rule {
    const char *name;
    bool whole, log;
    double factor;
} rules[FIT_PARAMETERS] = {
    [FIT_RATE] = {"rate", false, true, 3},
    [FIT_LEAVES] = {"leaves", true, true, 4},
    [FIT_ROWS] = {"rows", false, false, 0.25},
    [FIT_COLUMNS] = {"columns", false, false, 0.2},
    [FIT_LEAF_WEIGHT] = {"leaf_weight", false, true, 5},
    [FIT_PER_SPLIT] = {"per_split", false, true, 3},
    [FIT_WIDTH] = {"width", true, true, 2},
    [FIT_DROPOUT] = {"dropout", false, false, 0.3},
    [FIT_LR] = {"lr", false, true, 4},
};

void fit_range_write(fit_parameter which, const struct fit_range *r, struct str *b)
{
    const struct rule *rule = &rules[which];
    str_printf(b, "  %s: {type: %s, min: %.4g, max: %.4g%s", rule->name,
               rule->whole ? "int" : "float", r->min, r->max, rule->log ? ", scale: log" : "");
}

double fit_range_clamp(const struct fit_range *r, double value)
{
    return value < r->min ? r->min : value > r->max ? r->max : value;
}

/* Where in the range a value lies: 0 to 1. */
static double place_in(const struct rule *rule, const struct fit_range *r, double v)
{
    return rule->log ? log(v / r->min) / log(r->max / r->min) : (v - r->min) / (r->max - r->min);
}

static double further(const struct rule *rule, double end, bool up)
{
    double v = rule->log ? (up ? end * rule->factor : end / rule->factor)
                         : (up ? end + rule->factor : end - rule->factor);
    return rule->whole ? round(v) : v;
}

/* Returns whether an end has moved. */
static bool widen(const struct rule *rule, double v, struct fit_range *r, struct str *says)
{
    double place = place_in(rule, r, v), end;
    bool up = place > 0.5;
    if (!(place <= END || place >= 1 - END))
        return false;
    end = further(rule, up ? r->max : r->min, up);
    end = end < r->least ? r->least : end > r->most ? r->most : end;
    if (up ? end <= r->max : end >= r->min)
        return false;
    str_printf(
        says,
        "The best trial has %s %.4g, at the end of the range %.4g to %.4g: now it is searched "
        "%s %.4g\n",
        rule->name, v, r->min, r->max, up ? "up to" : "down to", end);
    *(up ? &r->max : &r->min) = end;
    return true;
}

size_t fit_ranges_widen(struct fit_range ranges[FIT_PARAMETERS], const json_t *params,
                        struct str *says)
{
    size_t n = 0;
    for (size_t i = 0; i < FIT_PARAMETERS; i++) {
        const json_t *value = json_object_get(params, rules[i].name);
        if (json_is_number(value))
            n += widen(&rules[i], json_number_value(value), &ranges[i], says);
    }
    return n;
}
