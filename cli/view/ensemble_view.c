#include "cli/view/ensemble_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/view/format.h"
#include "cli/view/text.h"

static void add_figure(struct str *b, const char *metric, const json_t *value)
{
    str_printf(b, "%s ", metric);
    format_value(b, value, FORMAT_SHORT);
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

/* "trial 7", or "trials 7 and 12": the best on each half. */
static void add_single(struct str *b, const json_t *single)
{
    const json_t *picked = json_object_get(single, "picked");
    json_int_t first = json_integer_value(json_array_get(picked, 0));
    json_int_t second = json_integer_value(json_array_get(picked, 1));
    if (picked && first != second)
        str_printf(b,
                   ", trials %" JSON_INTEGER_FORMAT " and %" JSON_INTEGER_FORMAT
                   ", each the best on one half",
                   first, second);
    else
        str_printf(b, ", trial %" JSON_INTEGER_FORMAT,
                   picked ? first : json_integer_value(json_object_get(single, "number")));
}

/* "Gain               0.012 (90 % interval -0.001 to 0.025): within the noise". */
static void add_gain(struct str *b, const json_t *gain)
{
    const json_t *low = json_object_get(gain, "low"), *high = json_object_get(gain, "high");
    double probability = json_number_value(json_object_get(gain, "probability"));
    if (!gain)
        return;
    str_puts(b, "Gain               ");
    format_value(b, json_object_get(gain, "value"), FORMAT_SHORT);
    if (low && high) {
        str_printf(b, " (%.0f %% interval ", probability * 100);
        format_value(b, low, FORMAT_SHORT);
        str_puts(b, " to ");
        format_value(b, high, FORMAT_SHORT);
        str_putc(b, ')');
    }
    str_puts(b,
             json_is_true(json_object_get(gain, "within_noise")) ? ": within the noise\n" : "\n");
}

static void add_recommended(struct str *b, const json_t *ensemble)
{
    const char *which = json_string_value(json_object_get(ensemble, "recommended"));
    json_int_t number =
        json_integer_value(json_object_get(json_object_get(ensemble, "best_single"), "number"));
    if (as_streq(which, "ensemble"))
        str_puts(b, "Recommended        the ensemble\n");
    else if (which)
        str_printf(b, "Recommended        trial %" JSON_INTEGER_FORMAT " alone\n", number);
}

/* How the figures were measured. Results of older servers have other fields and no such lines. */
static void add_method(struct str *b, const json_t *ensemble)
{
    const json_t *rows = json_object_get(ensemble, "rows");
    const char *why = json_string_value(json_object_get(ensemble, "metric_reason"));
    if (why) {
        str_puts(b, "Metric             ");
        text_escape(b, why, strlen(why), TEXT_ONE_LINE);
        str_putc(b, '\n');
    }
    if (rows)
        str_printf(b,
                   "Both are measured on all %" JSON_INTEGER_FORMAT
                   " held-out rows; what was chosen on one half of them predicts the other half.\n",
                   json_integer_value(rows));
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
    add_single(b, single);
    str_puts(b, "\nEnsemble           ");
    terminal_style_on(terminal, STYLE_BOLD, b);
    add_figure(b, metric, json_object_get(ensemble, "value"));
    terminal_style_off(terminal, STYLE_BOLD, b);
    str_printf(b, ", %zu model%s of %" JSON_INTEGER_FORMAT "\n", members, members == 1 ? "" : "s",
               json_integer_value(json_object_get(ensemble, "candidates")));
    add_gain(b, json_object_get(ensemble, "gain"));
    add_recommended(b, ensemble);
    add_method(b, ensemble);
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
