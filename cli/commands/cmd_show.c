/* assay show SWEEP: state, counts, best trial, the changes, the parameters of its space. */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/view/fork_view.h"
#include "cli/view/format.h"
#include "cli/view/learned_view.h"
#include "cli/view/objectives.h"
#include "cli/view/pairs.h"
#include "cli/view/rung_view.h"
#include "cli/view/test_view.h"
#include "cli/session/request.h"
#include "cli/session/session.h"

/* Add the objectives and the constraints on metrics and parameters. */
static void add_metrics(struct pairs *p, const json_t *sweep)
{
    struct str b = {0};
    const json_t *document = json_object_get(sweep, "document");
    size_t i;
    json_t *item;
    objectives_words(sweep, &b);
    pairs_add(p, objectives_count(sweep) > 1 ? "metrics" : "metric", STYLE_PLAIN, str_cstr(&b));
    json_array_foreach(json_object_get(sweep, "constraints"), i, item)
    {
        str_clear(&b);
        objectives_bounds(item, &b);
        pairs_add(p, "constraint", STYLE_PLAIN, str_cstr(&b));
    }
    json_array_foreach(json_object_get(document, "parameter_constraints"), i, item)
        pairs_add_json(p, "constraint", item);
    json_array_foreach(json_object_get(document, "forbidden"), i, item)
        pairs_add_json(p, "forbidden", item);
    str_done(&b);
}

static void add_head(struct pairs *p, const json_t *sweep)
{
    const char *state = json_string_value(json_object_get(sweep, "state"));
    pairs_add_json(p, "sweep", json_object_get(sweep, "id"));
    pairs_add(p, "state", terminal_state_style(state), state);
    pairs_add_json(p, "reason", json_object_get(sweep, "reason"));
    pairs_add_json(p, "note", json_object_get(sweep, "note"));
    if (json_integer_value(json_object_get(sweep, "priority")) != 0)
        pairs_add_json(p, "priority", json_object_get(sweep, "priority"));
    pairs_add_json(p, "description",
                   json_object_get(json_object_get(sweep, "document"), "description"));
    AS_AUTO(str_done) struct str tags = {0};
    format_tags(&tags, json_object_get(sweep, "tags"));
    if (tags.len)
        pairs_add(p, "tags", STYLE_PLAIN, tags.s);
    pairs_add_json(p, "remarks", json_object_get(sweep, "remarks"));
    add_metrics(p, sweep);
    pairs_add_json(p, "method", json_object_get(sweep, "method"));
    pairs_add_json(p, "seed", json_object_get(sweep, "seed"));
}

static void add_counts(struct pairs *p, const json_t *counts, const json_t *planned)
{
    struct str b = {0};
    const char *name;
    json_t *n;
    json_object_foreach((json_t *)counts, name, n)
    {
        if (json_integer_value(n) > 0 && !as_streq(name, "total"))
            str_printf(&b, "%s%s %" JSON_INTEGER_FORMAT, b.len ? ", " : "", name,
                       json_integer_value(n));
    }
    pairs_addf(p, "trials", "%" JSON_INTEGER_FORMAT " planned%s%s", json_integer_value(planned),
               b.len ? ": " : "", str_cstr(&b));
    str_done(&b);
}

/* Add what the model expects of the best trial, and which value was better by luck: "0.034 (95%
 * within 0.030 and 0.038; single values differ by 0.01); trial 40 was told 0.012". */
static void add_expected(struct pairs *p, const json_t *best)
{
    struct str b = {0};
    const json_t *x = json_object_get(best, "expected"), *told = json_object_get(best, "told");
    if (!json_is_object(x))
        return;
    format_value(&b, json_object_get(x, "mean"), FORMAT_SHORT);
    str_puts(&b, " (95% within ");
    format_value(&b, json_object_get(x, "low"), FORMAT_SHORT);
    str_puts(&b, " and ");
    format_value(&b, json_object_get(x, "high"), FORMAT_SHORT);
    str_puts(&b, "; single values differ by ");
    format_value(&b, json_object_get(x, "noise"), FORMAT_SHORT);
    str_puts(&b, ")");
    if (json_integer_value(json_object_get(told, "number")) !=
        json_integer_value(json_object_get(best, "number"))) {
        str_printf(&b, "; trial %" JSON_INTEGER_FORMAT " was told ",
                   json_integer_value(json_object_get(told, "number")));
        format_value(&b, json_object_get(told, "value"), FORMAT_SHORT);
    }
    pairs_add(p, "expected", STYLE_PLAIN, str_cstr(&b));
    str_done(&b);
}

static void add_best(struct pairs *p, const json_t *sweep)
{
    struct str b = {0};
    const json_t *best = json_object_get(sweep, "best");
    if (!json_is_object(best))
        return;
    format_value(&b, json_object_get(best, "value"), p->terminal.tty ? FORMAT_SHORT : FORMAT_EXACT);
    str_printf(&b, " (trial %" JSON_INTEGER_FORMAT "%s) ",
               json_integer_value(json_object_get(best, "number")),
               objectives_count(sweep) > 1 ? ", by the first metric" : "");
    format_params(&b, json_object_get(best, "params"), FORMAT_SHORT);
    pairs_add(p, "best", STYLE_BOLD, str_cstr(&b));
    add_expected(p, best);
    str_done(&b);
}

/* Add what can still be gained at most: "at most 0.004 (3% of median - best), by 34 trials". */
static void add_left(struct pairs *p, const json_t *sweep)
{
    struct str b = {0};
    const json_t *x = json_object_get(sweep, "regret");
    double relative;
    if (!json_is_number(json_object_get(x, "bound")))
        return;
    str_puts(&b, "at most ");
    format_value(&b, json_object_get(x, "bound"), FORMAT_SHORT);
    if (json_number_get(json_object_get(x, "relative"), &relative))
        str_printf(&b, relative < 1 ? ", %.3g%% of median - best" : ", %.0f%% of median - best",
                   100 * relative);
    str_printf(&b, ", by %" JSON_INTEGER_FORMAT " completed trials%s",
               json_integer_value(json_object_get(x, "completed")),
               json_is_true(json_object_get(x, "enough")) ? "" : " (too few to trust it)");
    pairs_add(p, "left to gain", STYLE_PLAIN, str_cstr(&b));
    str_done(&b);
}

static void add_times(struct pairs *p, const json_t *sweep)
{
    char buf[32];
    int64_t ms = format_elapsed_ms(json_object_get(sweep, "started_at"),
                                   json_object_get(sweep, "finished_at"), clock_wall_ms());
    pairs_add_json(p, "created", json_object_get(sweep, "created_at"));
    pairs_add_json(p, "started", json_object_get(sweep, "started_at"));
    pairs_add_json(p, "finished", json_object_get(sweep, "finished_at"));
    if (ms >= 0)
        pairs_add(p, "elapsed", STYLE_PLAIN, clock_format_duration(ms, buf));
}

/* Add a row for each parameter of the document: "lr  type float, min 0.0001, …". */
static void add_space(struct pairs *p, const json_t *parameters)
{
    const char *name, *field;
    json_t *spec, *v;
    json_object_foreach((json_t *)parameters, name, spec)
    {
        struct str b = {0};
        char label[100];
        json_object_foreach(spec, field, v)
        {
            str_printf(&b, "%s%s ", b.len ? ", " : "", field);
            format_value(&b, v, FORMAT_SHORT);
        }
        (void)snprintf(label, sizeof label, "  %s", name);
        pairs_add(p, label, STYLE_PLAIN, str_cstr(&b));
        str_done(&b);
    }
}

/* Add a row for each field that says where a program finds its own programs and variables. */
static void add_environment(struct pairs *p, const json_t *trial)
{
    static const char *const fields[] = {"venv", "env_file", "modules", "container"};
    const json_t *variables = json_object_get(json_object_get(trial, "environment"), "variables");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)variables, name, value) pairs_add_json(p, name, value);
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++)
        pairs_add_json(p, fields[i], json_object_get(trial, fields[i]));
}

/* Add a row for each change, oldest first: "2026-11-22 …  by tok1: max_trials 40 -> 200". */
static void add_changes(struct pairs *p, const json_t *changes)
{
    const json_t *items = json_object_get(changes, "items");
    for (size_t i = json_array_size(items); i-- > 0;) {
        const json_t *item = json_array_get(items, i);
        const char *at = json_string_value(json_object_get(item, "changed_at"));
        const char *by = json_string_value(json_object_get(item, "changed_by"));
        struct str b = {0};
        const char *name;
        json_t *change;
        str_printf(&b, "%s", at ? at : "?");
        if (by)
            str_printf(&b, " by %s", by);
        json_object_foreach(json_object_get(item, "changes"), name, change)
        {
            str_printf(&b, "; %s ", name);
            format_limit(&b, name, json_object_get(change, "from"));
            str_puts(&b, " -> ");
            format_limit(&b, name, json_object_get(change, "to"));
        }
        pairs_add(p, "changed", STYLE_PLAIN, str_cstr(&b));
        str_done(&b);
    }
}

/* The figures on test rows of what an ended sweep recommends. Both stay NULL where there are
 * none. */
static as_status get_tested(const struct session *s, const struct trial_ref *ref,
                            const json_t *sweep, json_t **ret_ensemble, json_t **ret_trial,
                            struct as_err *err)
{
    char rest[48];
    const json_t *number = json_object_get(json_object_get(sweep, "best"), "number");
    if (!json_is_string(json_object_get(sweep, "finished_at")) || !number)
        return AS_OK;
    as_status st = request_get(s->client, ref, "ensemble", NULL, ret_ensemble, err);
    if (st != AS_OK || json_object_get(*ret_ensemble, "test"))
        return st;
    (void)snprintf(rest, sizeof rest, "trials/%" JSON_INTEGER_FORMAT, json_integer_value(number));
    return request_get(s->client, ref, rest, NULL, ret_trial, err);
}

static const char *metric_of(const json_t *sweep)
{
    return json_string_value(json_object_get(json_object_get(sweep, "metric"), "name"));
}

/* The tree of forks, if the sweep may have some. */
static as_status add_forks(const struct session *s, const struct trial_ref *ref,
                           const json_t *sweep, struct pairs *p, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO trials = NULL;
    if (!fork_view_forks(sweep))
        return AS_OK;
    request_path(&path, ref, "trials");
    as_status st = str_check(&path, err);
    if (st == AS_OK)
        st = request_list(s->client, path.s, NULL, FORK_TRIALS_MAX, &trials, err);
    return st == AS_OK ? fork_view_tree(p, trials, err) : st;
}

static as_status show_sweep(const struct session *s, const char *id, struct as_err *err)
{
    struct trial_ref ref;
    JSON_AUTO sweep = NULL;
    JSON_AUTO changes = NULL;
    JSON_AUTO ensemble = NULL;
    JSON_AUTO best = NULL;
    as_status st = request_parse_ref(id, true, &ref, err);
    if (st < 0)
        return st;
    if (ref.number >= 0)
        return as_fail(err, AS_E_USAGE, "expected SWEEP, found '%.80s'; see assay trial", id);
    st = request_get(s->client, &ref, NULL, NULL, &sweep, err);
    if (st < 0)
        return st;
    st = request_get(s->client, &ref, "changes", NULL, &changes, err);
    if (st < 0)
        return st;
    st = get_tested(s, &ref, sweep, &ensemble, &best, err);
    if (st < 0)
        return st;
    if (s->json && json_object_set(sweep, "changes", json_object_get(changes, "items")) != 0)
        return as_fail_nomem(err);
    if (s->json)
        return session_print_json(sweep, err);
    struct pairs p = {.terminal = s->terminal, .name_width = 14};
    add_head(&p, sweep);
    add_counts(&p, json_object_get(sweep, "counts"), json_object_get(sweep, "planned_trials"));
    add_best(&p, sweep);
    add_left(&p, sweep);
    rung_view_pairs(&p, json_object_get(sweep, "early_stopping"));
    learned_view_pairs(json_object_get(sweep, "learned"), &p);
    test_view_pairs(ensemble, best, metric_of(sweep), &p);
    add_times(&p, sweep);
    add_environment(&p, json_object_get(json_object_get(sweep, "document"), "trial"));
    add_changes(&p, changes);
    if ((st = add_forks(s, &ref, sweep, &p, err)) != AS_OK) {
        str_done(&p.text);
        return st;
    }
    pairs_addf(&p, "dashboard", "%s/#/sweeps/%s", s->url, ref.sweep);
    if (p.terminal.tty)
        str_puts(&p.text, "parameters\n");
    add_space(&p, json_object_get(json_object_get(sweep, "document"), "parameters"));
    return pairs_print(&p, err);
}

int cmd_show(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 1, 1, &n, &code))
        code = session_end(&s, show_sweep(&s, argv[1], &err), &err);
    session_done(&s);
    return code;
}
