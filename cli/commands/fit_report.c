/* The report is made of the answers of the server: the ensemble that measured the model, the
 * version that was kept, the sweep. Pure: figures go in, text or JSON come out. */
#include "cli/commands/fit_report.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/shell_text.h"
#include "cli/view/format.h"
#include "cli/view/text.h"

#define LABEL "%-13s"

/* As the ensemble calls it, also where there is none: "rmse" for "val_rmse". */
static const char *metric_of(const struct fit_result *r)
{
    const char *metric = json_string_value(json_object_get(r->choice->ensemble, "metric"));
    size_t prefix = as_starts_with(r->metric, "val_") ? strlen("val_") : 0;
    return metric ? metric : r->metric + prefix;
}

static void add_number(double v, struct str *b)
{
    JSON_AUTO j = json_number_new(v);
    format_value(b, j, FORMAT_SHORT);
}

/* ---- what the model is made of ---- */

/* Append "3 boosted_trees, 1 mlp": the kinds of the trials, in the order in which they come. */
static void add_kinds(const struct fit_result *r, struct str *b)
{
    JSON_AUTO counts = json_object();
    size_t i;
    json_t *trial, *count;
    const char *kind;
    json_array_foreach((json_t *)r->trials, i, trial)
    {
        kind = json_string_value(json_object_get(json_object_get(trial, "params"), "kind"));
        kind = kind ? kind : "model";
        json_int_t n = json_integer_value(json_object_get(counts, kind));
        (void)json_object_set_new(counts, kind, json_integer(n + 1));
    }
    bool first = true;
    json_object_foreach(counts, kind, count)
    {
        str_printf(b, "%s%" JSON_INTEGER_FORMAT " ", first ? "" : ", ", json_integer_value(count));
        text_escape(b, kind, strlen(kind), TEXT_ONE_LINE);
        first = false;
    }
}

/* ", calibrated; 'yes' where its probability is above 0.31". */
static void add_calibration(const struct fit_result *r, struct str *b)
{
    const json_t *combine =
        r->choice->single ? NULL : json_object_get(r->choice->ensemble, "combine");
    const json_t *threshold = json_object_get(combine, "threshold");
    const json_t *classes = json_object_get(json_object_get(r->version, "outputs"), "classes");
    const char *second = json_string_value(json_array_get(classes, 1));
    if (!json_object_get(combine, "calibration"))
        return;
    str_puts(b, ", calibrated");
    if (json_object_get(combine, "class_weights"))
        str_puts(b, "; of rare classes a smaller probability is enough");
    if (!threshold || !second)
        return;
    str_puts(b, "; '");
    text_escape(b, second, strlen(second), TEXT_ONE_LINE);
    str_puts(b, "' where its probability is above ");
    format_value(b, threshold, FORMAT_SHORT);
}

/* Append how many of the trials are of a further layer. */
static void add_layer(const struct fit_result *r, struct str *b)
{
    size_t i, n = 0;
    json_t *trial;
    json_array_foreach((json_t *)r->trials, i, trial) n +=
        r->layer && as_streq(json_string_value(json_object_get(trial, "sweep")), r->layer);
    if (n > 0)
        str_printf(b, ", %zu of them in a second layer", n);
}

static void add_model(const struct fit_result *r, struct str *b)
{
    char size[32], limit[32];
    int64_t bytes = json_integer_value(json_object_get(r->version, "size"));
    const struct fit_choice *c = r->choice;
    str_printf(b, LABEL "%s@%" JSON_INTEGER_FORMAT ", %s\n", "Model",
               json_string_value(json_object_get(r->version, "model")),
               json_integer_value(json_object_get(r->version, "version")),
               format_size(bytes, size));
    const char *method = json_string_value(json_object_get(c->ensemble, "method"));
    str_printf(b, LABEL, "Made of");
    if (!c->single && method && json_array_size(r->trials) > 1)
        str_printf(b, "a %s ensemble of ", method);
    add_kinds(r, b);
    add_layer(r, b);
    if (r->models > json_array_size(r->trials))
        str_printf(b, ", with %zu models of folds", r->models);
    add_calibration(r, b);
    str_putc(b, '\n');
    if (!c->costs && bytes <= r->size_bytes)
        return;
    str_printf(b, LABEL "%s %s (--size)", "Size", bytes > r->size_bytes ? "more than" : "at most",
               format_size(r->size_bytes, limit));
    if (bytes > r->size_bytes)
        str_puts(b, ": no smaller model was found");
    if (c->costs) {
        str_printf(b, "%s a model of %s has %s ", bytes > r->size_bytes ? ";" : ":",
                   format_size(c->larger_bytes, size), metric_of(r));
        add_number(c->larger_value, b);
        str_puts(b, ", this one ");
        add_number(c->value, b);
    }
    str_putc(b, '\n');
}

/* ---- figures ---- */

/* Decimals such that half of the interval has two digits: further ones say nothing. -1: more than
 * are readable, or there is no interval. */
static int decimals_of(const json_t *low, const json_t *high)
{
    double half = (json_number_value(high) - json_number_value(low)) / 2;
    if (!json_is_number(low) || !json_is_number(high) || !(half > 0))
        return -1;
    double decimals = 1 - floor(log10(half));
    return decimals > 7 ? -1 : decimals < 0 ? 0 : (int)decimals;
}

/* "0.926 (90 % interval 0.905 to 0.947)"; `of` has the ends. */
static void add_figure(const json_t *value, const json_t *of, struct str *b)
{
    int decimals = decimals_of(json_object_get(of, "low"), json_object_get(of, "high"));
    format_decimals(b, value, decimals);
    format_interval(b, of, decimals);
}

/* The figure of the chosen model in an ensemble, or in its test rows. */
static const json_t *figure_of(const struct fit_choice *c)
{
    return c->single ? json_object_get(c->ensemble, "best_single") : c->ensemble;
}

/* The figure of the test rows and, where the ensemble has it, its interval. Without an ensemble it
 * is that of the one trial. New reference; NULL: there is none. */
static json_t *test_of(const struct fit_result *r, const json_t **ret_rows)
{
    const struct fit_choice *c = r->choice;
    const json_t *of = c->ensemble ? c->ensemble : json_array_get(r->trials, 0);
    const json_t *test = json_object_get(of, "test");
    *ret_rows = json_object_get(test, "rows");
    if (c->ensemble)
        return json_incref(json_object_get(test, c->single ? "best_single" : "ensemble"));
    const json_t *value = json_object_get(json_object_get(test, "metrics"), metric_of(r));
    return value ? json_pack("{s:O}", "value", value) : NULL;
}

static void add_test(const struct fit_result *r, struct str *b)
{
    const json_t *rows;
    JSON_AUTO figure = test_of(r, &rows);
    if (!figure)
        return;
    const json_t *value = json_object_get(figure, "value");
    json_int_t n = json_integer_value(rows);
    str_printf(b, LABEL "%s ", "Test", metric_of(r));
    if (json_is_number(value)) {
        add_figure(value, figure, b);
        str_printf(b, ", on %" JSON_INTEGER_FORMAT " test rows\n", n);
    } else {
        str_printf(b, "has no value on the %" JSON_INTEGER_FORMAT " test rows%s\n", n,
                   as_streq(metric_of(r), "auc") ? ": it takes rows of two classes" : "");
    }
}

static void add_score(const struct fit_result *r, struct str *b)
{
    const struct fit_choice *c = r->choice;
    const json_t *figure = figure_of(c), *best = json_object_get(r->sweep, "best");
    const char *metric = json_string_value(json_object_get(c->ensemble, "metric"));
    str_printf(b, LABEL "%s ", "Score", metric_of(r));
    add_figure(json_object_get(figure ? figure : best, "value"),
               json_object_get(figure, "interval"), b);
    if (c->ensemble)
        str_printf(
            b, ", %" JSON_INTEGER_FORMAT " rows, each predicted by models that had not seen it%s",
            json_integer_value(json_object_get(c->ensemble, "rows")),
            json_object_get(figure, "interval") ? "" : "; too few for an interval");
    else
        str_puts(b, ", by which it was chosen: too good");
    str_putc(b, '\n');
    if (metric && !json_is_true(json_object_get(c->ensemble, "is_sweep_metric")))
        str_printf(b, LABEL "trials were compared by %s, models by %s\n", "", r->metric, metric);
    add_test(r, b);
    size_t i;
    json_t *doubt;
    json_array_foreach((json_t *)r->doubts, i, doubt)
        str_printf(b, LABEL "but %s\n", "", json_string_value(doubt));
}

static void add_search(const struct fit_result *r, struct str *b)
{
    char time[32];
    const json_t *counts = json_object_get(r->sweep, "counts");
    json_int_t failed = json_integer_value(json_object_get(counts, "failed"));
    int64_t ms = format_elapsed_ms(json_object_get(r->sweep, "started_at"),
                                   json_object_get(r->sweep, "finished_at"), clock_wall_ms());
    json_int_t completed = json_integer_value(json_object_get(counts, "completed"));
    str_printf(b, LABEL "%" JSON_INTEGER_FORMAT " trial%s completed in %s", "Search", completed,
               completed == 1 ? "" : "s", clock_format_duration(ms < 0 ? 0 : ms, time));
    if (failed > 0)
        str_printf(b, ", %" JSON_INTEGER_FORMAT " failed", failed);
    str_printf(b, ": assay show %s\n", json_string_value(json_object_get(r->sweep, "id")));
    if (r->narrow)
        str_printf(b, LABEL "after those of %s, whose ranges were too narrow: assay show %s\n", "",
                   r->narrow, r->narrow);
    if (r->layer)
        str_printf(b, LABEL "then those of a further layer: assay show %s\n", "", r->layer);
}

/* ---- commands ---- */

/* The model as a command names it: its file if there is one, else the server's name. */
static void add_name(const struct fit_result *r, bool as_file, struct str *b)
{
    AS_AUTO(str_done) struct str name = {0};
    if (r->output)
        str_printf(&name, "%s%s", as_file && !strchr(r->output, '/') ? "./" : "", r->output);
    else
        str_printf(&name, "%s@%" JSON_INTEGER_FORMAT,
                   json_string_value(json_object_get(r->version, "model")),
                   json_integer_value(json_object_get(r->version, "version")));
    shell_word(b, str_cstr(&name));
}

static void add_commands(const struct fit_result *r, struct str *b)
{
    AS_AUTO(str_done) struct str file = {0};
    const char *model = json_string_value(json_object_get(r->version, "model"));
    str_printf(b, "\n" LABEL "assay predict ", "Predict");
    add_name(r, false, b);
    str_puts(b, " --data ");
    shell_word(b, r->data);
    str_printf(b, "\n" LABEL "assay serve ", "Serve");
    add_name(r, true, b);
    str_printf(b, "\n" LABEL, "Export");
    str_printf(&file, "%s.%s", model, r->exports ? "onnx" : "safetensors");
    if (!r->exports) {
        str_printf(b, "assay models get %s@%" JSON_INTEGER_FORMAT " %s", model,
                   json_integer_value(json_object_get(r->version, "version")), str_cstr(&file));
        str_puts(b, "   (not as ONNX: dates and texts have no place in it)\n");
    } else if (r->output) {
        str_printf(b, "assay models get %s --format onnx --from ", str_cstr(&file));
        shell_word(b, r->output);
        str_putc(b, '\n');
    } else {
        str_printf(b, "assay models get ");
        add_name(r, false, b);
        str_printf(b, " %s --format onnx\n", str_cstr(&file));
    }
}

/* How long a row takes, and what the limit of that cost. */
static void add_row_time(const struct fit_result *r, struct str *b)
{
    if (isnan(r->row_ms))
        return;
    str_printf(b, LABEL "%.3g ms\n", "One row", r->row_ms);
    if (r->slower->version) {
        JSON_AUTO value = json_number_new(r->slower->value);
        JSON_AUTO mine = json_number_new(r->choice->value);
        str_printf(b,
                   LABEL "at most %lld ms: %s@%" JSON_INTEGER_FORMAT " takes %.3g ms and has %s ",
                   "", (long long)r->row_time_ms,
                   json_string_value(json_object_get(r->slower->version, "model")),
                   json_integer_value(json_object_get(r->slower->version, "version")),
                   r->slower->row_ms, metric_of(r));
        format_value(b, value, FORMAT_SHORT);
        str_puts(b, ", this one ");
        format_value(b, mine, FORMAT_SHORT);
        str_puts(b, " (--row-time)\n");
    }
    if (r->row_ms > (double)r->row_time_ms)
        str_printf(b, LABEL "more than %lld ms (--row-time): no faster model was found\n", "",
                   (long long)r->row_time_ms);
}

void fit_report_format(const struct fit_result *r, struct str *b)
{
    add_score(r, b);
    add_model(r, b);
    add_row_time(r, b);
    add_search(r, b);
    add_commands(r, b);
}

/* New reference. */
static json_t *slower_json(const struct fit_slower *s)
{
    return s->version
               ? json_pack("{s:O, s:f, s:o}", "version", json_object_get(s->version, "version"),
                           "row_ms", s->row_ms, "value", json_number_new(s->value))
               : json_null();
}

json_t *fit_report_json(const struct fit_result *r)
{
    const struct fit_choice *c = r->choice;
    const json_t *figure = figure_of(c), *best = json_object_get(r->sweep, "best");
    const json_t *test_rows;
    JSON_AUTO test = test_of(r, &test_rows);
    return json_pack(
        "{s:O?, s:O?, s:s, s:O?, s:O?, s:O?, s:O?, s:O?, s:O?, s:O, s:O, s:O?, s:o, s:o, s:s?, "
        "s:s?, s:s?}",
        "sweep", json_object_get(r->sweep, "id"), "model", json_object_get(r->version, "model"),
        "metric", metric_of(r), "version", json_object_get(r->version, "version"), "size",
        json_object_get(r->version, "size"), "value",
        json_object_get(figure ? figure : best, "value"), "interval",
        json_object_get(figure, "interval"), "test", test, "rows",
        json_object_get(c->ensemble, "rows"), "trials", r->trials, "remarks", r->remarks, "classes",
        json_object_get(json_object_get(r->version, "outputs"), "classes"), "row_ms",
        isnan(r->row_ms) ? json_null() : json_real(r->row_ms), "slower", slower_json(r->slower),
        "output", r->output, "before", r->narrow, "layer", r->layer);
}
