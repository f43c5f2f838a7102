/* Early stopping in words. A count of what reached a rung is one text in two places: lines of the
 * summary after a sweep's end, and rows of `assay show`, which also name the rungs that nobody has
 * reached, because those are what a running sweep waits for. */
#include "cli/view/rung_view.h"

#include <stdio.h>

#include "base/str.h"
#include "cli/view/format.h"

static json_int_t number_of(const json_t *j, const char *name)
{
    return json_integer_value(json_object_get(j, name));
}

void rung_view_rows(struct pairs *p, const json_t *rungs)
{
    size_t i;
    json_t *r;
    json_array_foreach((json_t *)rungs, i, r)
    {
        struct str b = {0};
        char label[40];
        const char *decision = json_string_value(json_object_get(r, "decision"));
        const char *reason = json_string_value(json_object_get(r, "reason"));
        const json_t *value = json_object_get(r, "value");
        if (json_is_number(value))
            format_value(&b, value, FORMAT_SHORT);
        else
            str_puts(&b, "no number");
        str_printf(&b, ", %s: %s",
                   as_streq(decision, "go_on")   ? "goes on"
                   : as_streq(decision, "prune") ? "pruned"
                                                 : "paused",
                   reason ? reason : "");
        const char *promoted = json_string_value(json_object_get(r, "promoted_reason"));
        if (json_is_integer(json_object_get(r, "promoted_seq")))
            str_printf(&b, "; promoted%s%s", promoted ? ": " : "", promoted ? promoted : "");
        (void)snprintf(label, sizeof label, "rung %" JSON_INTEGER_FORMAT, number_of(r, "step"));
        pairs_add(p, label, STYLE_PLAIN, str_cstr(&b));
        str_done(&b);
    }
}

/* "9 reached it, 6 stopped, 0 wait". */
static void add_rung(const json_t *rung, struct str *b)
{
    str_printf(b,
               "%" JSON_INTEGER_FORMAT " reached it, %" JSON_INTEGER_FORMAT
               " stopped, %" JSON_INTEGER_FORMAT " wait",
               number_of(rung, "reached"), number_of(rung, "stopped"), number_of(rung, "paused"));
    if (number_of(rung, "disobeyed") > 0)
        str_printf(b, "; %" JSON_INTEGER_FORMAT " did not end as they were told",
                   number_of(rung, "disobeyed"));
}

static void add_steps(const json_t *report, struct str *b)
{
    str_printf(b,
               "%" JSON_INTEGER_FORMAT " spent, %" JSON_INTEGER_FORMAT " saved by early stopping",
               number_of(report, "steps_spent"), number_of(report, "steps_saved"));
}

void rung_view_report(const json_t *report, struct str *b)
{
    size_t i;
    json_t *r;
    const char *warning = json_string_value(json_object_get(report, "warning"));
    if (!json_is_object(report))
        return;
    json_array_foreach(json_object_get(report, "rungs"), i, r)
    {
        if (number_of(r, "reached") == 0)
            continue;
        str_printf(b, "Rung %-13" JSON_INTEGER_FORMAT " ", number_of(r, "step"));
        add_rung(r, b);
        str_putc(b, '\n');
    }
    str_puts(b, "Steps              ");
    add_steps(report, b);
    str_putc(b, '\n');
    if (warning)
        str_printf(b, "Warning            %s\n", warning);
}

void rung_view_pairs(struct pairs *p, const json_t *report)
{
    AS_AUTO(str_done) struct str b = {0};
    const char *warning = json_string_value(json_object_get(report, "warning"));
    size_t i;
    json_t *r;
    if (!json_is_object(report))
        return;
    json_array_foreach(json_object_get(report, "rungs"), i, r)
    {
        char label[40];
        str_clear(&b);
        add_rung(r, &b);
        (void)snprintf(label, sizeof label, "rung %" JSON_INTEGER_FORMAT, number_of(r, "step"));
        pairs_add(p, label, STYLE_PLAIN, str_cstr(&b));
    }
    str_clear(&b);
    add_steps(report, &b);
    pairs_add(p, "steps", STYLE_PLAIN, str_cstr(&b));
    pairs_add(p, "warning", STYLE_WARN, warning);
}
