/* Ensembles in words and tables.
 *
 * Results of older servers are stored, so a field may be missing: those without `folds` were
 * measured on two halves, and those without `rows` on a part that chose nothing. */
#include "cli/view/ensemble_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/view/format.h"
#include "cli/view/test_view.h"
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

/* A trial, or SWEEP/NUMBER of several sweeps. */
static void add_trial(struct str *b, const json_t *trial)
{
    const char *ref = json_string_value(trial);
    if (ref)
        text_escape(b, ref, strlen(ref), TEXT_ONE_LINE);
    else
        str_printf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(trial));
}

/* "trial 7", or "trials 7, 12 and 3": the best outside of each fold. */
static void add_single(struct str *b, const json_t *ensemble, const json_t *single)
{
    const json_t *picked = json_object_get(single, "picked");
    size_t n = json_array_size(picked);
    bool halves = !json_object_get(ensemble, "folds"); /* of an older server */
    if (n == 2 && json_equal(json_array_get(picked, 0), json_array_get(picked, 1)))
        n = 1;
    str_puts(b, n > 1 ? ", trials " : ", trial ");
    if (n == 0)
        add_trial(b, json_object_get(single, "number"));
    for (size_t i = 0; i < n; i++) {
        str_puts(b, i == 0 ? "" : i + 1 < n ? ", " : " and ");
        add_trial(b, json_array_get(picked, i));
    }
    if (n > 1)
        str_puts(b, halves ? ", each the best on one half" : ", each the best without a fold");
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
    const json_t *single = json_object_get(ensemble, "best_single");
    const char *sweep = json_string_value(json_object_get(single, "sweep"));
    if (as_streq(which, "ensemble"))
        str_puts(b, "Recommended        the ensemble\n");
    else if (which) {
        str_puts(b, "Recommended        trial ");
        if (sweep)
            text_escape(b, sweep, strlen(sweep), TEXT_ONE_LINE);
        str_puts(b, sweep ? "/" : "");
        add_trial(b, json_object_get(single, "number"));
        str_puts(b, " alone\n");
    }
}

/* How the figures were measured. Results of older servers have no folds, or other fields and no
 * such lines. */
static void add_method(struct str *b, const json_t *ensemble)
{
    const json_t *rows = json_object_get(ensemble, "rows");
    const char *why = json_string_value(json_object_get(ensemble, "metric_reason"));
    if (why) {
        str_puts(b, "Metric             ");
        text_escape(b, why, strlen(why), TEXT_ONE_LINE);
        str_putc(b, '\n');
    }
    const json_t *folds = json_object_get(ensemble, "folds");
    if (rows && folds)
        str_printf(b,
                   "Both are measured on all %" JSON_INTEGER_FORMAT
                   " held-out rows, cut into %" JSON_INTEGER_FORMAT
                   " folds; what was chosen without a fold predicts it.\n",
                   json_integer_value(rows), json_integer_value(folds));
    else if (rows)
        str_printf(b,
                   "Both are measured on all %" JSON_INTEGER_FORMAT
                   " held-out rows; what was chosen on one half of them predicts the other half.\n",
                   json_integer_value(rows));
    if (rows)
        str_puts(b, "Members are shown with the values that chose them, which are too good.\n");
}

/* "greedy, " or nothing: results of older servers have no method. */
static void add_way(struct str *b, const json_t *ensemble)
{
    const char *method = json_string_value(json_object_get(ensemble, "method"));
    const json_t *threshold = json_object_get(json_object_get(ensemble, "combine"), "threshold");
    if (!method)
        return;
    str_puts(b, ", ");
    text_escape(b, method, strlen(method), TEXT_ONE_LINE);
    if (json_is_true(json_object_get(ensemble, "non_negative")))
        str_puts(b, " without negative coefficients");
    if (json_is_true(json_object_get(ensemble, "calibrate")))
        str_puts(b, ", calibrated");
    if (threshold) {
        str_puts(b, ", threshold ");
        format_value(b, threshold, FORMAT_SHORT);
    }
    if (json_object_get(json_object_get(ensemble, "combine"), "class_weights"))
        str_puts(b, ", classes weighed");
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
    add_single(b, ensemble, single);
    str_puts(b, "\nEnsemble           ");
    terminal_style_on(terminal, STYLE_BOLD, b);
    add_figure(b, metric, json_object_get(ensemble, "value"));
    terminal_style_off(terminal, STYLE_BOLD, b);
    add_way(b, ensemble);
    str_printf(b, ", %zu model%s of %" JSON_INTEGER_FORMAT "\n", members, members == 1 ? "" : "s",
               json_integer_value(json_object_get(ensemble, "candidates")));
    add_gain(b, json_object_get(ensemble, "gain"));
    add_recommended(b, ensemble);
    test_view_ensemble(ensemble, b);
    add_method(b, ensemble);
}

static void add_member(struct table *t, const json_t *member, bool several,
                       const struct terminal *terminal)
{
    struct str b = {0};
    format_kind kind = terminal->tty ? FORMAT_SHORT : FORMAT_EXACT;
    if (several)
        table_cell(t, json_string_value(json_object_get(member, "sweep")));
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
    const json_t *members = json_object_get(ensemble, "members");
    bool several = json_object_get(json_array_get(members, 0), "sweep") != NULL;
    struct table *t = table_create();
    if (!t)
        return as_fail_nomem(err);
    if (several)
        table_column(t, "sweep", TABLE_LEFT, 8);
    table_column(t, "trial", TABLE_RIGHT, 0);
    table_column(t, "weight", TABLE_RIGHT, 0);
    table_column(t, "count", TABLE_RIGHT, 0);
    table_column(t, metric ? metric : "value", TABLE_RIGHT, 0);
    table_column(t, "parameters", TABLE_LEFT, 20);
    size_t i;
    json_t *member;
    json_array_foreach(members, i, member) add_member(t, member, several, terminal);
    *ret = t;
    return AS_OK;
}

/* The figures of one that was asked for, or why it has none. */
static void add_figures(struct table *t, const json_t *ensemble, format_kind kind)
{
    struct str b = {0};
    const json_t *gain = json_object_get(ensemble, "gain");
    const json_t *single = json_object_get(ensemble, "best_single");
    const json_t *of[] = {json_object_get(ensemble, "value"), json_object_get(single, "value"),
                          json_object_get(gain, "value"), json_object_get(gain, "low"),
                          json_object_get(gain, "high")};
    const char *state = json_string_value(json_object_get(ensemble, "state"));
    const char *noise = json_is_true(json_object_get(gain, "within_noise")) ? "within" : "beyond";
    for (size_t i = 0; i < AS_ARRAY_LEN(of); i++) {
        str_clear(&b);
        if (of[i])
            format_value(&b, of[i], kind);
        table_cell(t, b.len ? b.s : NULL);
    }
    str_done(&b);
    table_cell(t, gain ? noise : state);
    table_cell(t, json_string_value(json_object_get(ensemble, "recommended")));
}

as_status ensemble_view_list(const json_t *items, const struct terminal *terminal,
                             struct table **ret, struct as_err *err)
{
    static const char *const columns[] = {"value", "single", "gain", "low", "high"};
    struct table *t = table_create();
    if (!t)
        return as_fail_nomem(err);
    table_column(t, "number", TABLE_RIGHT, 0);
    table_column(t, "method", TABLE_LEFT, 0);
    table_column(t, "size", TABLE_RIGHT, 0);
    table_column(t, "metric", TABLE_LEFT, 0);
    for (size_t i = 0; i < AS_ARRAY_LEN(columns); i++)
        table_column(t, columns[i], TABLE_RIGHT, 0);
    table_column(t, "noise", TABLE_LEFT, 0);
    table_column(t, "recommended", TABLE_LEFT, 0);
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item)
    {
        const json_t *request = json_object_get(item, "request");
        const json_t *e = json_object_get(item, "ensemble");
        table_cellf(t, "%" JSON_INTEGER_FORMAT,
                    json_integer_value(json_object_get(item, "number")));
        table_cell(t, json_string_value(json_object_get(request, "method")));
        table_cellf(t, "%" JSON_INTEGER_FORMAT,
                    json_integer_value(json_object_get(request, "size")));
        table_cell(t, json_string_value(json_object_get(e, "metric")));
        add_figures(t, e, terminal->tty ? FORMAT_SHORT : FORMAT_EXACT);
    }
    *ret = t;
    return AS_OK;
}
