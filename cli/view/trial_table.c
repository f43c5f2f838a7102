/* Tables of trials for `trials`, `best`, `best --pareto` and the summary of a sweep.
 *
 * The layout is decided once, from the sweep and all rows; then add_columns() and add_row() follow
 * it in the same order. They must stay in step: a cell belongs to a column only by its position.
 * On a terminal, columns without a value are left out to save width. In a pipe they stay, so
 * that the columns that a script sees depend on the rows as little as possible. */
#include "cli/view/trial_table.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/view/format.h"
#include "cli/view/objectives.h"

/* Append the keys of an object that are not in `seen` yet. */
static bool add_names(json_t *names, json_t *seen, const json_t *object)
{
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)object, name, v)
    {
        if (json_object_get(seen, name))
            continue;
        if (json_object_set_new(seen, name, json_true()) != 0 ||
            json_array_append_new(names, json_string(name)) != 0)
            return false;
    }
    return true;
}

static json_t *names_of(const json_t *first, const json_t *items, const char *field)
{
    JSON_AUTO seen = json_object();
    JSON_AUTO names = json_array();
    size_t i;
    json_t *item;
    if (!seen || !names || !add_names(names, seen, first))
        return NULL;
    json_array_foreach((json_t *)items, i, item)
    {
        if (!add_names(names, seen, json_object_get(item, field)))
            return NULL;
    }
    return as_steal(names);
}

json_t *trial_table_names(const json_t *items, const char *field)
{
    return names_of(NULL, items, field);
}

json_t *trial_table_params(const json_t *items, const json_t *sweep)
{
    const json_t *document = json_object_get(sweep, "document");
    return names_of(json_object_get(document, "parameters"), items, "params");
}

/* Remove the names that no item has: conditional parameters that are active in none of the rows. */
static void drop_unused(json_t *names, const json_t *items)
{
    for (size_t n = json_array_size(names); n-- > 0;) {
        const char *name = json_string_value(json_array_get(names, n));
        bool used = false;
        size_t i;
        json_t *item;
        json_array_foreach((json_t *)items, i, item) used =
            used || json_object_get(json_object_get(item, "params"), name);
        if (!used)
            (void)json_array_remove(names, n);
    }
}

/* Whether any item has a text in this field; on a terminal an empty column would waste width. */
static bool has_text(const json_t *items, const char *field)
{
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)items, i, trial)
    {
        if (json_is_string(json_object_get(trial, field)))
            return true;
    }
    return false;
}

/* The columns of a table. */
struct layout {
    trial_table_kind kind;
    const json_t *params;  /* names of parameters */
    const json_t *metrics; /* names of objectives and constrained metrics */
    bool has_feasible, has_groups, has_reasons;
    bool is_single; /* one objective: its column shows `value`, which a running trial has, too */
    const struct terminal *terminal;
};

static void add_columns(struct table *t, const struct layout *l)
{
    size_t i;
    json_t *name;
    if (l->kind == TRIAL_TABLE_BEST)
        table_column(t, "rank", TABLE_RIGHT, 0);
    table_column(t, "trial", TABLE_RIGHT, 0);
    if (l->kind == TRIAL_TABLE_ALL)
        table_column(t, "state", TABLE_LEFT, 9);
    json_array_foreach((json_t *)l->metrics, i, name)
        table_column(t, json_string_value(name), TABLE_RIGHT, 9);
    if (l->has_feasible)
        table_column(t, "feasible", TABLE_LEFT, 0);
    if (l->kind == TRIAL_TABLE_ALL)
        table_column(t, "step", TABLE_RIGHT, 0);
    table_column(t, "time", TABLE_RIGHT, 6);
    json_array_foreach((json_t *)l->params, i, name)
        table_column(t, json_string_value(name), TABLE_RIGHT, 6);
    if (l->has_groups)
        table_column(t, "group", TABLE_LEFT, 9);
    if (l->has_reasons)
        table_column(t, "reason", TABLE_LEFT, 20);
}

static void add_value(struct table *t, style s, const json_t *v, format_kind kind)
{
    struct str b = {0};
    if (kind == FORMAT_SHORT && json_is_real(v))
        str_printf(&b, "%.4g", json_real_value(v));
    else
        format_value(&b, v, kind);
    table_cell_styled(t, s, b.len ? b.s : NULL);
    str_done(&b);
}

static void add_time(struct table *t, const json_t *trial, const struct terminal *terminal)
{
    char buf[32];
    int64_t ms = format_elapsed_ms(json_object_get(trial, "started_at"),
                                   json_object_get(trial, "finished_at"), clock_wall_ms());
    if (ms < 0)
        table_cell(t, NULL);
    else if (terminal->tty)
        table_cell(t, clock_format_duration(ms, buf));
    else
        table_cellf(t, "%.3f", (double)ms / 1e3);
}

static void add_metrics(struct table *t, const json_t *trial, const struct layout *l,
                        format_kind exact)
{
    const json_t *values = json_object_get(trial, "metrics");
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)l->metrics, i, name)
    {
        const json_t *v = i == 0 && l->is_single ? json_object_get(trial, "value")
                                                 : json_object_get(values, json_string_value(name));
        add_value(t, i == 0 ? STYLE_BOLD : STYLE_PLAIN, v, exact);
    }
}

static void add_feasible(struct table *t, const json_t *trial)
{
    const json_t *feasible = json_object_get(trial, "feasible");
    if (json_is_boolean(feasible))
        table_cell_styled(t, json_is_true(feasible) ? STYLE_GOOD : STYLE_WARN,
                          json_is_true(feasible) ? "yes" : "no");
    else
        table_cell(t, NULL);
}

static void add_row(struct table *t, size_t rank, const json_t *trial, const struct layout *l)
{
    format_kind exact = l->terminal->tty ? FORMAT_SHORT : FORMAT_EXACT;
    const char *state = json_string_value(json_object_get(trial, "state"));
    const json_t *values = json_object_get(trial, "params");
    if (l->kind == TRIAL_TABLE_BEST)
        table_cellf(t, "%zu", rank);
    add_value(t, STYLE_PLAIN, json_object_get(trial, "number"), exact);
    if (l->kind == TRIAL_TABLE_ALL)
        table_cell_styled(t, terminal_state_style(state), state);
    add_metrics(t, trial, l, exact);
    if (l->has_feasible)
        add_feasible(t, trial);
    if (l->kind == TRIAL_TABLE_ALL)
        add_value(t, STYLE_PLAIN, json_object_get(trial, "step"), exact);
    add_time(t, trial, l->terminal);
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)l->params, i, name)
        add_value(t, STYLE_PLAIN, json_object_get(values, json_string_value(name)), exact);
    if (l->has_groups)
        table_cell(t, json_string_value(json_object_get(trial, "group")));
    if (l->has_reasons)
        table_cell_styled(t, STYLE_DIM, json_string_value(json_object_get(trial, "reason")));
}

as_status trial_table_create(const json_t *items, trial_table_kind kind, const json_t *sweep,
                             const struct terminal *terminal, struct table **ret,
                             struct as_err *err)
{
    JSON_AUTO params = trial_table_params(items, sweep);
    JSON_AUTO metrics = objectives_names(sweep);
    struct table *t = params && metrics ? table_create() : NULL;
    if (!t)
        return as_fail_nomem(err);
    if (terminal->tty)
        drop_unused(params, items);
    const struct layout l = {
        .kind = kind,
        .params = params,
        .metrics = metrics,
        .has_feasible = kind == TRIAL_TABLE_ALL && objectives_has_constraints(sweep),
        /* In a pipe these columns always exist, so that scripts can rely on them. */
        .has_groups = kind == TRIAL_TABLE_ALL && (!terminal->tty || has_text(items, "group")),
        .has_reasons = kind == TRIAL_TABLE_ALL && (!terminal->tty || has_text(items, "reason")),
        .is_single = objectives_count(sweep) == 1,
        .terminal = terminal,
    };
    add_columns(t, &l);
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)items, i, trial) add_row(t, i + 1, trial, &l);
    *ret = t;
    return AS_OK;
}
