#include "cli/view/ensemble_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/view/format.h"
#include "cli/view/text.h"

/* "error 0.0148 (accuracy 98.52 %)". */
static void add_figure(struct str *b, const char *metric, const json_t *value)
{
    double v;
    str_printf(b, "%s ", metric);
    format_value(b, value, FORMAT_SHORT);
    if (!json_number_get(value, &v))
        return;
    if (as_streq(metric, "error"))
        str_printf(b, " (accuracy %.2f %%)", (1 - v) * 100);
    else if (as_streq(metric, "accuracy"))
        str_printf(b, " (%.2f %%)", v * 100);
}

static void add_reason(const json_t *ensemble, struct str *b)
{
    const char *state = json_string_value(json_object_get(ensemble, "state"));
    const char *reason = json_string_value(json_object_get(ensemble, "reason"));
    struct str line = {0};
    if (as_streq(state, "pending"))
        str_puts(&line, "The ensemble does not exist yet: the sweep has not ended");
    else
        str_puts(&line, "There is no ensemble");
    if (reason && *reason)
        str_printf(&line, ": %s", reason);
    text_escape(b, str_cstr(&line), line.len, TEXT_ONE_LINE);
    str_putc(b, '\n');
    str_done(&line);
}

void ensemble_view_summary(const json_t *ensemble, const struct terminal *terminal, struct str *b)
{
    const char *metric = json_string_value(json_object_get(ensemble, "metric"));
    const json_t *single = json_object_get(ensemble, "best_single");
    if (!as_streq(json_string_value(json_object_get(ensemble, "state")), "ready")) {
        add_reason(ensemble, b);
        return;
    }
    metric = metric ? metric : "value";
    size_t members = json_array_size(json_object_get(ensemble, "members"));
    str_puts(b, "Best single model  ");
    add_figure(b, metric, json_object_get(single, "value"));
    str_printf(b, ", trial %" JSON_INTEGER_FORMAT "\n",
               json_integer_value(json_object_get(single, "number")));
    str_puts(b, "Ensemble           ");
    terminal_style_on(terminal, STYLE_BOLD, b);
    add_figure(b, metric, json_object_get(ensemble, "value"));
    terminal_style_off(terminal, STYLE_BOLD, b);
    str_printf(b, ", %zu model%s of %" JSON_INTEGER_FORMAT "\n", members, members == 1 ? "" : "s",
               json_integer_value(json_object_get(ensemble, "candidates")));
    str_printf(b,
               "Both are measured on one half of the held-out rows (%" JSON_INTEGER_FORMAT
               "); the other half (%" JSON_INTEGER_FORMAT ") chose the models.\n",
               json_integer_value(json_object_get(ensemble, "rows_report")),
               json_integer_value(json_object_get(ensemble, "rows_select")));
}

static void add_member(struct table *t, const json_t *member, const struct terminal *terminal)
{
    struct str b = {0};
    format_kind kind = terminal->tty ? FORMAT_SHORT : FORMAT_EXACT;
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(member, "number")));
    format_value(&b, json_object_get(member, "weight"), kind);
    table_cell(t, str_cstr(&b));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(member, "count")));
    str_clear(&b);
    format_value(&b, json_object_get(member, "value"), kind);
    table_cell(t, b.len ? b.s : NULL);
    str_clear(&b);
    format_params(&b, json_object_get(member, "params"), kind);
    table_cell(t, str_cstr(&b));
    str_done(&b);
}

as_status ensemble_view_members(const json_t *ensemble, const struct terminal *terminal,
                                struct table **ret, struct as_err *err)
{
    const char *metric = json_string_value(json_object_get(ensemble, "metric"));
    struct table *t = table_create();
    if (!t)
        return as_fail_nomem(err);
    table_column(t, "trial", TABLE_RIGHT, 0);
    table_column(t, "weight", TABLE_RIGHT, 0);
    table_column(t, "count", TABLE_RIGHT, 0);
    table_column(t, metric ? metric : "value", TABLE_RIGHT, 0);
    table_column(t, "parameters", TABLE_LEFT, 20);
    size_t i;
    json_t *member;
    json_array_foreach(json_object_get(ensemble, "members"), i, member)
        add_member(t, member, terminal);
    *ret = t;
    return AS_OK;
}
