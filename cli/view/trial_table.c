/* Tables of trials for `trials`, `best`, `best --pareto` and the summary of a sweep.
 *
 * The layout is decided once, from the sweep and the facts of all rows; then add_columns() and
 * add_row() follow it in the same order. They must stay in step: a cell belongs to a column only
 * by its position. On a terminal, columns without a value are left out to save width. In a pipe
 * they stay, so that the columns that a script sees depend on the rows as little as possible. */
#include "cli/view/trial_table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/view/format.h"
#include "cli/view/objectives.h"

json_t *trial_table_names(const json_t *items, const char *field)
{
    JSON_AUTO seen = json_object();
    JSON_AUTO names = json_array();
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)items, i, item)
    {
        const char *name;
        json_t *v;
        json_object_foreach(json_object_get(item, field), name, v)
        {
            if (json_object_get(seen, name))
                continue;
            if (json_object_set_new(seen, name, json_true()) != 0 ||
                json_array_append_new(names, json_string(name)) != 0)
                return NULL;
        }
    }
    return seen && names ? as_steal(names) : NULL;
}

struct trial_table {
    trial_table_kind kind;
    json_t *params;  /* names of parameters; owned */
    json_t *metrics; /* names of objectives and constrained metrics; owned */
    size_t n_rows;
    bool has_feasible, has_groups, has_reasons;
    bool is_single; /* one objective: its column shows `value`, which a running trial has, too */
    const struct terminal *terminal;
};

static void add_columns(struct table *t, const struct trial_table *l)
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

static void add_param(struct table *t, const json_t *v, format_kind kind)
{
    if (json_is_null(v))
        table_cell(t, "null"); /* a value; an inactive parameter has an empty cell */
    else
        add_value(t, STYLE_PLAIN, v, kind);
}

static void add_time(struct table *t, const json_t *trial, const struct terminal *terminal)
{
    char buf[32];
    int64_t ms = format_ran_ms(trial, clock_wall_ms());
    if (ms < 0)
        table_cell(t, NULL);
    else if (terminal->tty)
        table_cell(t, clock_format_duration(ms, buf));
    else
        table_cellf(t, "%.3f", (double)ms / 1e3);
}

static void add_metrics(struct table *t, const json_t *trial, const struct trial_table *l,
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

static void add_row(struct table *t, size_t rank, const json_t *trial, const struct trial_table *l)
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
        add_param(t, json_object_get(values, json_string_value(name)), exact);
    if (l->has_groups)
        table_cell(t, json_string_value(json_object_get(trial, "group")));
    if (l->has_reasons)
        table_cell_styled(t, STYLE_DIM, json_string_value(json_object_get(trial, "reason")));
}

/* The columns of parameters: in a pipe all, on a terminal those that some trial has. */
static json_t *shown_params(const struct trial_facts *f, bool tty)
{
    JSON_AUTO names = json_array();
    size_t i;
    json_t *name;
    json_array_foreach(f->params, i, name)
    {
        bool shown = !tty || json_object_get(f->used_params, json_string_value(name));
        if (shown && json_array_append(names, name) != 0)
            return NULL;
    }
    return as_steal(names);
}

as_status trial_table_begin(const struct trial_facts *f, trial_table_kind kind, const json_t *sweep,
                            const struct terminal *terminal, struct trial_table **ret,
                            struct table **ret_table, struct as_err *err)
{
    AS_AUTO(trial_table_freep) struct trial_table *l = as_calloc(1, sizeof *l);
    AS_AUTO(table_freep) struct table *t = table_create();
    bool all = kind == TRIAL_TABLE_ALL;
    if (!l || !t)
        return as_fail_nomem(err);
    *l = (struct trial_table){
        .kind = kind,
        .params = shown_params(f, terminal->tty),
        .metrics = objectives_names(sweep),
        .has_feasible = all && objectives_has_constraints(sweep),
        /* In a pipe these columns always exist, so that scripts can rely on them. */
        .has_groups = all && (!terminal->tty || f->has_groups),
        .has_reasons = all && (!terminal->tty || f->has_reasons),
        .is_single = objectives_count(sweep) == 1,
        .terminal = terminal,
    };
    if (!l->params || !l->metrics)
        return as_fail_nomem(err);
    add_columns(t, l);
    *ret = as_steal(l);
    *ret_table = as_steal(t);
    return AS_OK;
}

void trial_table_free(struct trial_table *l)
{
    if (!l)
        return;
    json_decref(l->params);
    json_decref(l->metrics);
    free(l);
}

void trial_table_add(struct trial_table *l, struct table *t, const json_t *items)
{
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)items, i, trial) add_row(t, ++l->n_rows, trial, l);
}

as_status trial_table_create(const json_t *items, trial_table_kind kind, const json_t *sweep,
                             const struct terminal *terminal, struct table **ret,
                             struct as_err *err)
{
    AS_AUTO(trial_facts_done) struct trial_facts facts = {0};
    AS_AUTO(trial_table_freep) struct trial_table *l = NULL;
    struct table *t = NULL;
    as_status st = trial_facts_init(&facts, sweep, err);
    if (st == AS_OK)
        st = trial_facts_add(&facts, items, err);
    if (st == AS_OK)
        st = trial_table_begin(&facts, kind, sweep, terminal, &l, &t, err);
    if (st < 0)
        return st;
    assert(l && t); /* trial_table_begin() made them */
    trial_table_add(l, t, items);
    *ret = t;
    return AS_OK;
}
