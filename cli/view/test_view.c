/* Figures with their intervals, and "the difference is within the noise" where an interval contains
 * 0. Test figures stand under their own heading and never in a column: nothing is chosen by them
 * (decision 1007). */
#include "cli/view/test_view.h"

#include <string.h>

#include "base/json.h"
#include "cli/view/format.h"
#include "cli/view/text.h"

#define INDENT "                   "

/* "error 0.031 (90 % interval 0.02 to 0.042)" */
static void add_figure(struct str *b, const char *metric, const json_t *figure)
{
    str_printf(b, "%s ", metric);
    format_value(b, json_object_get(figure, "value"), FORMAT_SHORT);
    format_interval(b, figure, -1);
}

void test_view_ensemble(const json_t *ensemble, struct str *b)
{
    const json_t *test = json_object_get(ensemble, "test");
    const json_t *single = json_object_get(ensemble, "best_single");
    const char *metric = json_string_value(json_object_get(ensemble, "metric"));
    const char *reason = json_string_value(json_object_get(test, "reason"));
    const char *sweep = json_string_value(json_object_get(single, "sweep"));
    metric = metric ? metric : "value";
    if (!test)
        return;
    if (reason) {
        str_puts(b, "Test rows          no figure: ");
        text_escape(b, reason, strlen(reason), TEXT_ONE_LINE);
        str_putc(b, '\n');
        return;
    }
    str_printf(b,
               "Test rows          %" JSON_INTEGER_FORMAT " that chose nothing:\n" INDENT "trial ",
               json_integer_value(json_object_get(test, "rows")));
    if (sweep) {
        text_escape(b, sweep, strlen(sweep), TEXT_ONE_LINE);
        str_putc(b, '/');
    }
    str_printf(b, "%" JSON_INTEGER_FORMAT " ",
               json_integer_value(json_object_get(single, "number")));
    add_figure(b, metric, json_object_get(test, "best_single"));
    str_puts(b, "\n" INDENT "ensemble ");
    add_figure(b, metric, json_object_get(test, "ensemble"));
    str_puts(b, "\n" INDENT);
    const json_t *gain = json_object_get(test, "gain");
    add_figure(b, "gain", gain);
    str_puts(b,
             json_is_true(json_object_get(gain, "within_noise")) ? ": within the noise\n" : "\n");
}

/* The name of the figure that says the same of test rows as the sweep's metric says of held-out
 * ones. */
static const char *name_of(const json_t *trial, const char *sweep_metric)
{
    const json_t *metrics = json_object_get(json_object_get(trial, "test"), "metrics");
    bool is_trainers = sweep_metric && as_starts_with(sweep_metric, "val_");
    const char *name = is_trainers ? sweep_metric + strlen("val_") : "";
    if (!as_streq(name, "loss"))
        return name;
    return json_object_get(metrics, "log_loss") ? "log_loss" : "mse";
}

void test_view_trial(const json_t *trial, const char *sweep_metric, struct str *b)
{
    const json_t *test = json_object_get(trial, "test");
    const char *name = name_of(trial, sweep_metric);
    const json_t *value = json_object_get(json_object_get(test, "metrics"), name);
    if (!value)
        return;
    str_printf(b,
               "Test rows          %" JSON_INTEGER_FORMAT
               " that chose nothing: trial %" JSON_INTEGER_FORMAT " ",
               json_integer_value(json_object_get(test, "rows")),
               json_integer_value(json_object_get(trial, "number")));
    str_printf(b, "%s ", name);
    format_value(b, value, FORMAT_SHORT);
    str_putc(b, '\n');
}

static void add_pair(struct pairs *p, const char *label, const char *metric, const json_t *figure)
{
    AS_AUTO(str_done) struct str b = {0};
    add_figure(&b, metric, figure);
    pairs_add(p, label, STYLE_PLAIN, str_cstr(&b));
}

void test_view_pairs(const json_t *ensemble, const json_t *trial, const char *sweep_metric,
                     struct pairs *p)
{
    const json_t *test = json_object_get(ensemble, "test");
    const char *metric = json_string_value(json_object_get(ensemble, "metric"));
    if (json_object_get(test, "rows")) {
        pairs_add_json(p, "test rows", json_object_get(test, "rows"));
        add_pair(p, "test single", metric ? metric : "value", json_object_get(test, "best_single"));
        add_pair(p, "test ensemble", metric ? metric : "value", json_object_get(test, "ensemble"));
        add_pair(p, "test gain", "gain", json_object_get(test, "gain"));
        return;
    }
    const char *name = name_of(trial, sweep_metric);
    test = json_object_get(trial, "test");
    JSON_AUTO figure =
        json_pack("{s:O*}", "value", json_object_get(json_object_get(test, "metrics"), name));
    if (json_object_size(figure) == 0)
        return;
    pairs_add_json(p, "test rows", json_object_get(test, "rows"));
    add_pair(p, "test best", name, figure);
}
