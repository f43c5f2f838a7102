/* assay compare SWEEP/N SWEEP/M …: a row for each parameter and metric, a column for each trial. */
#include <string.h>

#include "base/json.h"
#include "cli/commands/cmd.h"
#include "cli/view/format.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/view/trial_table.h"

#define MAX_TRIALS 32

/* Add a row of values, marked when they differ. The name has its group as a prefix, because a
 * parameter and a metric may have the same name. */
static void add_row(const struct session *s, struct table *t, const char *group, const char *name,
                    const json_t *trials)
{
    size_t i;
    json_t *trial;
    bool different = false;
    const json_t *first = NULL;
    json_array_foreach((json_t *)trials, i, trial)
    {
        const json_t *from = *group ? json_object_get(trial, group) : trial;
        const json_t *v = json_object_get(from, name);
        if (i == 0)
            first = v;
        different = different || (v ? !first || !json_equal(v, first) : first != NULL);
    }
    table_cell_styled(t, STYLE_WARN, different ? "*" : "");
    if (*group)
        table_cellf(t, "%.*s.%s", (int)strlen(group) - 1, group, name); /* params: param.NAME */
    else
        table_cell(t, name);
    json_array_foreach((json_t *)trials, i, trial)
    {
        struct str b = {0};
        const json_t *from = *group ? json_object_get(trial, group) : trial;
        (as_streq(group, "params") ? format_param : format_value)(
            &b, json_object_get(from, name), s->terminal.tty ? FORMAT_SHORT : FORMAT_EXACT);
        table_cell_styled(t, different ? STYLE_BOLD : STYLE_PLAIN, b.len ? b.s : NULL);
        str_done(&b);
    }
}

/* Whether any of the trials has this field. */
static bool some_has(const json_t *trials, const char *field)
{
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)trials, i, trial)
    {
        const json_t *v = json_object_get(trial, field);
        if (v && !json_is_null(v))
            return true;
    }
    return false;
}

static as_status add_group(const struct session *s, struct table *t, const char *group,
                           const json_t *trials, struct as_err *err)
{
    JSON_AUTO names = trial_table_names(trials, group);
    size_t i;
    json_t *name;
    if (!names)
        return as_fail_nomem(err);
    json_array_foreach(names, i, name) add_row(s, t, group, json_string_value(name), trials);
    return AS_OK;
}

static as_status print_comparison(const struct session *s, int n, char **names,
                                  const json_t *trials, struct as_err *err)
{
    AS_AUTO(table_freep) struct table *t = table_create();
    if (!t)
        return as_fail_nomem(err);
    table_column(t, s->terminal.tty ? "" : "differs", TABLE_LEFT, 1);
    table_column(t, "name", TABLE_LEFT, 8);
    for (int i = 0; i < n; i++)
        table_column(t, names[i], TABLE_RIGHT, 8);
    static const char *const fields[] = {"state", "value",    "feasible", "origin",
                                         "step",  "restarts", "runner",   "client"};
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++)
        if (i < 2 || some_has(trials, fields[i]))
            add_row(s, t, "", fields[i], trials);
    as_status st = add_group(s, t, "params", trials, err);
    if (st < 0)
        return st;
    st = add_group(s, t, "metrics", trials, err);
    if (st < 0)
        return st;
    return session_print_table(s, t, err);
}

static as_status compare_trials(const struct session *s, int n, char **names, struct as_err *err)
{
    JSON_AUTO trials = json_array();
    if (!trials)
        return as_fail_nomem(err);
    for (int i = 0; i < n; i++) {
        struct trial_ref ref;
        json_t *trial = NULL;
        as_status st = request_parse_ref(names[i], false, &ref, err);
        if (st < 0)
            return st;
        st = request_get(s->client, &ref, NULL, NULL, &trial, err);
        if (st < 0)
            return st;
        if (json_array_append_new(trials, trial) != 0)
            return as_fail_nomem(err);
    }
    if (!s->json)
        return print_comparison(s, n, names, trials, err);
    JSON_AUTO answer = json_pack("{s:O}", "items", trials);
    return session_print_json(answer, err);
}

int cmd_compare(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 2, MAX_TRIALS, &n, &code))
        code = session_end(&s, compare_trials(&s, n, argv + 1, &err), &err);
    session_done(&s);
    return code;
}
