/* assay runners: lists the runners, or removes one whose machine or folder is lost. */
#include <inttypes.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/view/format.h"
#include "cli/session/list.h"
#include "cli/session/session.h"

static void add_row(const struct session *s, struct table *t, const json_t *runner, int64_t now_ms)
{
    char buf[32];
    const char *state = json_string_value(json_object_get(runner, "state"));
    const json_t *seen = json_object_get(runner, "seen_at");
    table_cell(t, json_string_value(json_object_get(runner, "name")));
    table_cell_styled(t, terminal_state_style(state), state);
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(runner, "running")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT,
                json_integer_value(json_object_get(runner, "used_slots")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(runner, "slots")));
    table_cellf(t, "%zu", json_array_size(json_object_get(runner, "gpus")));
    table_cell(t, json_string_value(json_object_get(runner, "host")));
    table_cell(t, json_string_value(json_object_get(runner, "version")));
    table_cell(t, s->terminal.tty ? format_ago(seen, now_ms, buf) : json_string_value(seen));
}

static as_status list_runners(const struct session *s, struct as_err *err)
{
    static const struct list_column columns[] = {
        {"runner", TABLE_LEFT, 12}, {"state", TABLE_LEFT, 0},   {"running", TABLE_RIGHT, 0},
        {"used", TABLE_RIGHT, 0},   {"slots", TABLE_RIGHT, 0},  {"gpus", TABLE_RIGHT, 0},
        {"host", TABLE_LEFT, 8},    {"version", TABLE_LEFT, 0}, {"seen", TABLE_LEFT, 8},
        {.header = NULL},
    };
    const struct list l = {.path = "/v1/runners", .columns = columns, .add_row = add_row};
    return list_print(s, &l, err);
}

int cmd_runners(const struct verb *v, int argc, char **argv)
{
    struct session s = {0};
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 0, 2, &n, &code)) {
        if (n == 0)
            code = session_end(&s, list_runners(&s, &err), &err);
        else if (as_streq(argv[1], "remove") && n == 2)
            code = session_end(&s, list_delete(&s, "/v1/runners", argv[2], "removed", &err), &err);
        else
            code = exit_with_usage(v->name, "expected nothing or `remove NAME`");
    }
    session_done(&s);
    return code;
}
